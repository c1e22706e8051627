-- A row of what search, nearest and similar_to give.
CREATE TYPE recall.found AS (
    rank        bigint,
    score       double precision,
    similarity  double precision,
    words       double precision,
    "position"  bigint,
    id          text,
    thread_id   text,
    resource_id text,
    role        text,
    text        text,
    created_at  timestamptz,
    metadata    jsonb
);
COMMENT ON TYPE recall.found IS 'A message with how it was found: a row of search(), nearest() and similar_to().';
