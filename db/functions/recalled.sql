-- A row of what recall and context give.
CREATE TYPE recall.recalled AS (
    "position"     bigint,
    id             text,
    thread_id      text,
    resource_id    text,
    role           text,
    text           text,
    created_at     timestamptz,
    metadata       jsonb,
    reasons        text[],
    context_of     text,
    context_offset bigint
);
COMMENT ON TYPE recall.recalled IS 'A message with why it was recalled: a row of recall() and context().';
