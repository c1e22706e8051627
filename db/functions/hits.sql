-- The messages that search_positions finds, whose parameters these are but that
-- matching is made of metadata, and query_model is that of the index: the one named
-- or, where index_name is NULL, the live one. Of both a thread and a resource, the
-- thread is of the resource or nothing is found. Order: by rank.
CREATE OR REPLACE FUNCTION recall.hits(
    search_mode text,
    question text,
    query_vector vector,
    index_name text,
    of_thread_id text,
    of_resource_id text,
    top_k integer,
    threshold double precision,
    metadata jsonb,
    roles text[],
    starts_at timestamptz,
    ends_at timestamptz
) RETURNS SETOF recall.found
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT
        h.rank, h.score, h.similarity, h.words,
        m.seq, m.id::text, m.thread_id::text, m.resource_id::text, m.role,
        recall.plain_text(m.content), m.created_at::timestamptz, recall.message_metadata(m.content)
    FROM (
        SELECT s.*, row_number() OVER () AS rank
        FROM recall.search_positions(
            coalesce(of_thread_id, ''),
            CASE
                WHEN of_thread_id IS NULL AND of_resource_id IS NULL THEN recall.refuse(
                    'thread_id or resource_id is required', coalesce(of_thread_id, of_resource_id)
                )
                ELSE coalesce(of_resource_id, '')
            END,
            search_mode,
            question,
            query_vector,
            (
                SELECT i.model
                FROM recall.embedding_indexes AS i
                WHERE CASE WHEN index_name IS NULL THEN i.state = 'live' ELSE i.name = index_name END
            ),
            coalesce(index_name, ''),
            top_k,
            threshold,
            coalesce(roles, '{}'),
            recall.metadata_predicate(metadata),
            coalesce(starts_at, '-infinity'),
            coalesce(ends_at, 'infinity')
        ) AS s
    ) AS h
    CROSS JOIN LATERAL (SELECT f.* FROM recall.messages AS f WHERE f.id = h.message_id OFFSET 0) AS m
    WHERE of_resource_id IS NULL OR m.resource_id = of_resource_id
    ORDER BY h.rank;
END;
