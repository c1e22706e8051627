-- +goose Up

-- The texts of a message without what was recalled from other conversations into
-- it: blocks between the marks that a recall puts around them. The recall's own
-- memory would otherwise find its answers again, as if they had been said.
-- +goose StatementBegin
CREATE FUNCTION recall.said_texts(texts jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT CASE
        WHEN strpos(texts::text, '<remembered_from_other_conversation>') = 0 THEN texts
        ELSE (
            SELECT jsonb_agg(
                regexp_replace(
                    t.words,
                    '<remembered_from_other_conversation>.*?(?:<end_remembered_from_other_conversation>|$)', '', 'g'
                )
                ORDER BY t.n
            )
            FROM jsonb_array_elements_text(texts) WITH ORDINALITY AS t (words, n)
        )
    END;
END;
-- +goose StatementEnd

-- The texts of a message, as a JSON array: of its text parts or, where it has
-- none, of a content that is a plain string. strict, since a lax path looks into
-- arrays that stand where an object should.
CREATE OR REPLACE FUNCTION recall.message_texts(content jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN recall.said_texts(CASE
    WHEN content @? 'strict $.parts[*] ? (@.type == "text" && @.text.type() == "string")' THEN jsonb_path_query_array(
        content, 'strict $.parts[*] ? (@.type == "text" && @.text.type() == "string").text', '{}', true
    )
    ELSE jsonb_path_query_array(content, 'strict $.content ? (@.type() == "string")', '{}', true)
END);

-- +goose Down
CREATE OR REPLACE FUNCTION recall.message_texts(content jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN content @? 'strict $.parts[*] ? (@.type == "text" && @.text.type() == "string")' THEN jsonb_path_query_array(
        content, 'strict $.parts[*] ? (@.type == "text" && @.text.type() == "string").text', '{}', true
    )
    ELSE jsonb_path_query_array(content, 'strict $.content ? (@.type() == "string")', '{}', true)
END;
DROP FUNCTION recall.said_texts(jsonb);
