-- The query for a phrase: its words one after the other, and all bigrams of its
-- Chinese, Japanese and Korean runs, whose words PostgreSQL does not know.
CREATE OR REPLACE FUNCTION recall.phrase_query(config regconfig, phrase text) RETURNS tsquery
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT CASE
        WHEN cardinality(b.bigrams) > 0 THEN (
            SELECT string_agg(recall.lexeme_query(g.bigram)::text, ' & ')::tsquery FROM unnest(b.bigrams[1:256]) AS g (bigram)
        )
        ELSE phraseto_tsquery(config, phrase)
    END
    FROM (SELECT recall.cjk_bigrams(phrase) AS bigrams) AS b;
END;
