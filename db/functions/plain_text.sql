-- What a message says: its texts, one a line; empty where it has none.
CREATE OR REPLACE FUNCTION recall.plain_text(content jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT coalesce(string_agg(t.words, E'\n' ORDER BY t.n), '')
    FROM jsonb_array_elements_text(recall.message_texts(content)) WITH ORDINALITY AS t (words, n);
END;
