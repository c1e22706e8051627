-- +goose Up

-- The text search configuration of all messages. It is a function, so that the
-- generated column below can use it; the command that changes it rewrites the
-- column.
CREATE FUNCTION recall.text_config() RETURNS regconfig
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 'pg_catalog.english'::regconfig;

-- The texts of a message, as a JSON array: of its text parts or, where it has
-- none, of a content that is a plain string. strict, since a lax path looks into
-- arrays that stand where an object should.
CREATE FUNCTION recall.message_texts(content jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN content @? 'strict $.parts[*] ? (@.type == "text" && @.text.type() == "string")' THEN jsonb_path_query_array(
        content, 'strict $.parts[*] ? (@.type == "text" && @.text.type() == "string").text', '{}', true
    )
    ELSE jsonb_path_query_array(content, 'strict $.content ? (@.type() == "string")', '{}', true)
END;

-- The pairs of neighbouring characters in a text's runs of Chinese, Japanese and
-- Korean, which PostgreSQL does not split into words, and the characters that
-- stand alone: kana, ideographs (with extension A and compatibility), hangul.
-- Takes time in proportion to the text, which substr would not.
-- +goose StatementBegin
CREATE FUNCTION recall.cjk_bigrams(in_text text) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT coalesce(array_agg(DISTINCT p.pair), '{}')
    FROM (
        SELECT
            CASE
                WHEN count(*) OVER (PARTITION BY run.n) = 1 THEN c.character
                ELSE c.character || lead(c.character) OVER (PARTITION BY run.n ORDER BY c.i)
            END AS pair
        FROM regexp_matches(
                in_text, '[\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff]+', 'g'
            ) WITH ORDINALITY AS run (chars, n)
        CROSS JOIN LATERAL unnest(string_to_array(run.chars[1], NULL)) WITH ORDINALITY AS c (character, i)
    ) AS p
    WHERE p.pair IS NOT NULL;
END;
-- +goose StatementEnd

-- The part of a message's texts that is searched by words: all of it, up to what a
-- tsvector can hold (1 MB).
CREATE FUNCTION recall.searched_texts(texts jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN octet_length(texts::text) <= 200000 THEN texts
    ELSE jsonb_build_array(left(texts::text, 60000))
END;

-- What a text is found by.
CREATE FUNCTION recall.lexemes(config regconfig, in_text text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN to_tsvector(config, in_text)
    -- Text of one byte a character has no such runs; asking so first is cheap.
    || CASE
        WHEN octet_length(in_text) > char_length(in_text) THEN array_to_tsvector(recall.cjk_bigrams(in_text))
        ELSE ''::tsvector
    END;

-- What a message is found by: its texts, the name of the speaker where
-- content.metadata.name has one, and the day it was sent as 'D Month' (the year
-- would match everything). Each is an element of its own, so that no phrase
-- reaches from one into the next.
CREATE FUNCTION recall.message_lexemes(config regconfig, role text, content jsonb, created_at timestamptz) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN role IN ('user', 'assistant') AND recall.message_texts(content) <> '[]' THEN
        to_tsvector(
            config,
            recall.searched_texts(recall.message_texts(content)) || to_jsonb(
                CASE
                    WHEN jsonb_typeof(content -> 'metadata' -> 'name') = 'string' THEN left(content -> 'metadata' ->> 'name', 1000) || ' '
                    ELSE ''
                END
                || extract(day FROM created_at AT TIME ZONE 'UTC')::text
                || (ARRAY[
                    ' January', ' February', ' March', ' April', ' May', ' June', ' July', ' August', ' September', ' October',
                    ' November', ' December'
                ])[extract(month FROM created_at AT TIME ZONE 'UTC')::integer]
            )
        )
        || CASE
            -- Text of one byte a character has no such runs; asking so first is cheap.
            WHEN octet_length(recall.message_texts(content)::text) > char_length(recall.message_texts(content)::text)
                THEN array_to_tsvector(recall.cjk_bigrams(recall.searched_texts(recall.message_texts(content))::text))
            ELSE ''::tsvector
        END
    ELSE ''
END;

-- Whether a message ends in a question mark, ASCII or full width.
CREATE FUNCTION recall.message_asks(content jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(recall.message_texts(content) ->> -1 ~ '[?\uff1f]\s*$', false);

ALTER TABLE recall.messages
    ADD COLUMN lexemes tsvector NOT NULL
        GENERATED ALWAYS AS (recall.message_lexemes(recall.text_config(), role, content, created_at)) STORED,
    ADD COLUMN asks boolean NOT NULL
        GENERATED ALWAYS AS (recall.message_asks(content)) STORED;

-- +goose Down
ALTER TABLE recall.messages DROP COLUMN asks, DROP COLUMN lexemes;
DROP FUNCTION recall.message_asks(jsonb);
DROP FUNCTION recall.message_lexemes(regconfig, text, jsonb, timestamptz);
DROP FUNCTION recall.lexemes(regconfig, text);
DROP FUNCTION recall.searched_texts(jsonb);
DROP FUNCTION recall.cjk_bigrams(text);
DROP FUNCTION recall.message_texts(jsonb);
DROP FUNCTION recall.text_config();
