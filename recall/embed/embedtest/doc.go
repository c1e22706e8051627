// Package embedtest is for the tests of what uses embedders: [Stub], a service
// with OpenAI's /v1/embeddings that fails in the ways such services do, and
// [Fixed], an embedder whose vectors the test chooses.
package embedtest
