-- +goose Up

-- +goose StatementBegin
-- The next max_rows messages, by id, after after_id that have a text but no entry
-- in an index.
CREATE FUNCTION recall.unembedded_messages(
    of_index recall.embedding_indexes, after_id text, max_rows integer
) RETURNS SETOF text
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        $sql$
        SELECT m.id
        FROM recall.messages AS m
        WHERE m.id > $1 COLLATE "C"
            AND m.role IN ('user', 'assistant')
            AND NOT EXISTS (SELECT FROM recall.%I AS e WHERE e.message_id = m.id)
            AND EXISTS (SELECT FROM jsonb_array_elements_text(recall.message_texts(m.content)) AS t (words) WHERE t.words ~ '\S')
        ORDER BY m.id
        LIMIT $2
        $sql$,
        'embeddings_' || of_index.id
    ) USING after_id, max_rows;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- How many messages an index has, and how many of those with a text it lacks.
-- Reads the whole index, and all messages it lacks.
CREATE FUNCTION recall.embedding_coverage(of_index recall.embedding_indexes)
RETURNS TABLE (embedded bigint, missing bigint)
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        $sql$
        SELECT
            (SELECT count(*) FROM recall.%1$I AS e WHERE e.chunk = 0),
            (
                SELECT count(*)
                FROM recall.messages AS m
                WHERE m.role IN ('user', 'assistant')
                    AND NOT EXISTS (SELECT FROM recall.%1$I AS e WHERE e.message_id = m.id)
                    AND EXISTS (
                        SELECT FROM jsonb_array_elements_text(recall.message_texts(m.content)) AS t (words) WHERE t.words ~ '\S'
                    )
            )
        $sql$,
        'embeddings_' || of_index.id
    );
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Drops the table of an index.
CREATE FUNCTION recall.drop_embedding_table(of_index recall.embedding_indexes) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    EXECUTE format('DROP TABLE recall.%I', 'embeddings_' || of_index.id);
END
$$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION recall.drop_embedding_table(recall.embedding_indexes);
DROP FUNCTION recall.embedding_coverage(recall.embedding_indexes);
DROP FUNCTION recall.unembedded_messages(recall.embedding_indexes, text, integer);
