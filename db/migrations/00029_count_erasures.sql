-- +goose Up

-- Counts the erasures of resources, in one row: who has read without a lock sees by
-- it that what he read may have been erased since, and keeps it nowhere.
CREATE TABLE recall.erasures (
    id    smallint NOT NULL,
    count bigint NOT NULL,
    CONSTRAINT erasures_pkey PRIMARY KEY (id)
);
INSERT INTO recall.erasures (id, count) VALUES (1, 0);

-- +goose Down
DROP TABLE recall.erasures;
