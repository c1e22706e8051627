-- +goose Up

-- A UUID of version 7 (RFC 9562, 5.7): 48 bits of Unix time in milliseconds,
-- then 74 random bits. PostgreSQL has uuidv7() from version 18 only.
-- +goose StatementBegin
CREATE FUNCTION recall.new_id() RETURNS text
LANGUAGE sql VOLATILE PARALLEL SAFE
RETURN encode(
    -- gen_random_uuid() is of version 4 (0100); setting two bits makes it 7 (0111).
    set_bit(
        set_bit(
            overlay(
                uuid_send(gen_random_uuid())
                PLACING substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
                FROM 1 FOR 6
            ),
            52, 1
        ),
        53, 1
    ),
    'hex'
)::uuid::text;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION recall.new_id();
