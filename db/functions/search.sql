-- The top_k messages of a thread, or of all threads of a resource, that have the
-- words of a query, best first: what the mode lexical finds over HTTP. It needs no
-- embedder. A part of the query in double quotes must occur as a phrase. metadata,
-- roles, starts_at and ends_at restrict what is found as they do in recall.
CREATE OR REPLACE FUNCTION recall.search(
    query text,
    thread_id text DEFAULT NULL,
    resource_id text DEFAULT NULL,
    top_k integer DEFAULT 4,
    metadata jsonb DEFAULT NULL,
    roles text[] DEFAULT NULL,
    starts_at timestamptz DEFAULT NULL,
    ends_at timestamptz DEFAULT NULL
) RETURNS SETOF recall.found
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT h.rank, h.score, h.similarity, h.words, h."position", h.id, h.thread_id, h.resource_id, h.role, h.text, h.created_at, h.metadata
    FROM recall.hits(
        'lexical', query, NULL, NULL,
        search.thread_id, search.resource_id, search.top_k, NULL,
        search.metadata, search.roles, search.starts_at, search.ends_at
    ) AS h;
END;

COMMENT ON FUNCTION recall.search(text, text, text, integer, jsonb, text[], timestamptz, timestamptz) IS
'The messages of a thread, or of all threads of a resource, that have the words of a query, best first; words in double quotes must stand side by side. Needs no embedder.';
