-- The lexemes of a question and, where with_shares, the share of all messages that
-- has each, as far as ANALYZE knows: of the about 1,000 most common; 0 for others.
-- At most 256, the first of the question: the cost of an index look-up grows with
-- their square.
CREATE OR REPLACE FUNCTION recall.question_lexemes(config regconfig, question text, with_shares boolean)
RETURNS TABLE (lexeme text, share double precision)
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF NOT with_shares THEN
        RETURN QUERY
        SELECT q.lexeme, 0::float8
        FROM unnest(recall.lexemes(config, question)) AS q
        ORDER BY q.positions[1], q.lexeme
        LIMIT 256;
        RETURN;
    END IF;
    RETURN QUERY
    SELECT q.lexeme, coalesce(c.share, 0)::float8
    FROM (
        SELECT l.lexeme
        FROM unnest(recall.lexemes(config, question)) AS l
        ORDER BY l.positions[1], l.lexeme
        LIMIT 256
    ) AS q
    LEFT JOIN (
        SELECT u.lexeme, u.share
        FROM pg_stats AS p
        CROSS JOIN LATERAL unnest(p.most_common_elems::text::text[], p.most_common_elem_freqs) AS u (lexeme, share)
        WHERE p.schemaname = 'recall' AND p.tablename = 'messages' AND p.attname = 'lexemes'
    ) AS c ON c.lexeme = q.lexeme;
END
$$;
