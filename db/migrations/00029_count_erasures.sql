-- +goose Up

-- Counts the erasures of resources, in one row: who has read without a lock sees by
-- it that what he read may have been erased since, and keeps it nowhere.
CREATE TABLE recall.erasures (
    single boolean NOT NULL DEFAULT true,
    count  bigint NOT NULL,
    CONSTRAINT erasures_pkey PRIMARY KEY (single),
    CONSTRAINT erasures_single_check CHECK (single)
);
INSERT INTO recall.erasures (count) VALUES (0);

-- +goose Down
DROP TABLE recall.erasures;
