-- One row an embedding index: of how many messages it has the vectors, and of how
-- many it lacks them (index_coverage, which reads all of both). It reads with the
-- rights of who asks.
CREATE OR REPLACE VIEW recall.embedding_coverage WITH (security_invoker = true) AS
SELECT
    i.name AS index_name,
    i.model,
    i.dimensions,
    i.state,
    c.embedded::bigint AS embedded,
    c.missing::bigint AS missing
FROM recall.embedding_indexes AS i
CROSS JOIN LATERAL recall.index_coverage(i) AS c;

COMMENT ON VIEW recall.embedding_coverage IS 'One row an embedding index: how many messages it has the vectors of.';
COMMENT ON COLUMN recall.embedding_coverage.index_name IS 'The index''s name.';
COMMENT ON COLUMN recall.embedding_coverage.model IS 'The model whose vectors it has.';
COMMENT ON COLUMN recall.embedding_coverage.dimensions IS 'The length of its vectors.';
COMMENT ON COLUMN recall.embedding_coverage.state IS 'building, live or retired; searches use the live one.';
COMMENT ON COLUMN recall.embedding_coverage.embedded IS 'How many messages it has.';
COMMENT ON COLUMN recall.embedding_coverage.missing IS 'How many messages with a text it lacks.';
