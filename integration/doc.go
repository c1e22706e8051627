// Package integration runs the product against PostgreSQL in a container, as it
// runs in production, and takes the database away under load. Its tests are
// skipped where no Docker engine answers, and fail there with CI=true.
//
// PGRECALL_TEST_IMAGE names the image: PostgreSQL with pgvector that takes the
// variables of the official image. TESTCONTAINERS_RYUK_DISABLED=true saves the
// helper image that removes containers of a killed test.
package integration
