-- The top_k messages of a thread, or of all threads of a resource, whose vectors are
-- nearest to one, best first: what the mode semantic finds over HTTP for a question
-- that has it. It is a vector of the index's model, of length 1; index_name NULL
-- means the live index. What is less similar than threshold is left out. metadata,
-- roles, starts_at and ends_at restrict what is found as they do in recall. Error
-- PR404: there is no such index, or its vectors have other dimensions.
CREATE OR REPLACE FUNCTION recall.nearest(
    embedding vector,
    thread_id text DEFAULT NULL,
    resource_id text DEFAULT NULL,
    top_k integer DEFAULT 4,
    threshold double precision DEFAULT NULL,
    metadata jsonb DEFAULT NULL,
    roles text[] DEFAULT NULL,
    starts_at timestamptz DEFAULT NULL,
    ends_at timestamptz DEFAULT NULL,
    index_name text DEFAULT NULL
) RETURNS SETOF recall.found
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT h.rank, h.score, h.similarity, h.words, h."position", h.id, h.thread_id, h.resource_id, h.role, h.text, h.created_at, h.metadata
    FROM recall.hits(
        'semantic', '', nearest.embedding, nearest.index_name,
        nearest.thread_id, nearest.resource_id, nearest.top_k, nearest.threshold,
        nearest.metadata, nearest.roles, nearest.starts_at, nearest.ends_at
    ) AS h;
END;

COMMENT ON FUNCTION recall.nearest(vector, text, text, integer, double precision, jsonb, text[], timestamptz, timestamptz, text) IS
'The messages of a thread, or of all threads of a resource, whose vectors are nearest to a vector of length 1 from the index''s model, best first.';
