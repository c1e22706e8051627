-- The top_k messages most similar to one by the vectors that an index has of them,
-- best first, without itself: nearest, asked with message_vector. They lie in the
-- thread or resource given or, without either, in all threads of the message's
-- owner. Nothing where the message is not there or has no vector.
CREATE OR REPLACE FUNCTION recall.similar_to(
    message_id text,
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
    SELECT
        row_number() OVER (ORDER BY n.rank), n.score, n.similarity, n.words,
        n."position", n.id, n.thread_id, n.resource_id, n.role, n.text, n.created_at, n.metadata
    FROM (
        SELECT i.name, recall.message_vector(i, similar_to.message_id) AS embedding
        FROM recall.embedding_indexes AS i
        WHERE CASE WHEN similar_to.index_name IS NULL THEN i.state = 'live' ELSE i.name = similar_to.index_name END
    ) AS v
    CROSS JOIN LATERAL recall.nearest(
        v.embedding,
        similar_to.thread_id,
        CASE
            WHEN similar_to.thread_id IS NULL AND similar_to.resource_id IS NULL THEN coalesce(
                (SELECT m.resource_id FROM recall.messages AS m WHERE m.id = similar_to.message_id), ''
            )
            ELSE similar_to.resource_id
        END,
        similar_to.top_k + 1, similar_to.threshold, similar_to.metadata, similar_to.roles,
        similar_to.starts_at, similar_to.ends_at, v.name
    ) AS n
    WHERE n.id <> similar_to.message_id
    ORDER BY n.rank
    LIMIT similar_to.top_k;
END;

COMMENT ON FUNCTION recall.similar_to(text, text, text, integer, double precision, jsonb, text[], timestamptz, timestamptz, text) IS
'The messages most similar to one by their vectors, best first: of a thread, of a resource or, without either, of the message''s owner.';
