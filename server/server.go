// Package server speaks Mastra's memory protocol over HTTP for a
// [recall.Memory].
//
// A handler reads the shape of its request, calls one method of the memory and
// writes the answer. What a request may mean is the memory's to judge. Content
// and metadata pass through as the bytes they came in.
package server

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/server/token"
)

// Defaults of a [Config].
const (
	DefaultBodyBytes      = 10 << 20
	DefaultRequestTimeout = 30 * time.Second
)

// Config says how the server treats requests.
type Config struct {
	// Logger gets one line a request; nil means [slog.Default].
	Logger *slog.Logger
	// BodyBytes bounds a request's body, as sent and as inflated; 0 means
	// [DefaultBodyBytes].
	BodyBytes int64
	// JSONDepth bounds the nesting of content, metadata and filters; 0 means
	// that of [recall.DefaultLimits].
	JSONDepth int
	// RequestTimeout bounds the work on a request; 0 means
	// [DefaultRequestTimeout].
	RequestTimeout time.Duration
	// Keys are those that callers must show once there is one; nil for none, and
	// unless there are Tokens all callers are the operator then.
	Keys *recall.Keyring
	// Tokens are the JSON Web Tokens that callers may show as well, and must show where
	// they have no key; nil for none.
	Tokens *token.Verifier
	// RateLimit bounds how many requests a second a caller sends, beyond the RateBurst
	// that he may send at once; 0 for any number.
	RateLimit, RateBurst int
	// CORSOrigins are the origins whose pages may read answers, "*" for all; none if
	// empty.
	CORSOrigins []string
	// Loopback says that only this machine can reach the server. Without credentials
	// it then refuses requests under any other name, which web pages can make a
	// browser send.
	Loopback bool
}

// New gives the handler of all routes.
func New(memory *recall.Memory, config Config) *echo.Echo {
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if config.BodyBytes == 0 {
		config.BodyBytes = DefaultBodyBytes
	}
	if config.JSONDepth == 0 {
		config.JSONDepth = recall.DefaultLimits().JSONDepth
	}
	if config.RequestTimeout == 0 {
		config.RequestTimeout = DefaultRequestTimeout
	}
	e := echo.New()
	e.IPExtractor = echo.ExtractIPDirect() // headers are anybody's to write
	e.HTTPErrorHandler = writeError
	e.Pre(observe(config.Logger), deadline(config.RequestTimeout), routeEscaped)
	if len(config.CORSOrigins) > 0 {
		e.Use(crossOrigin(config.CORSOrigins))
	}
	api{memory: memory, config: config, limiter: newLimiter(config.RateLimit, config.RateBurst)}.register(e)
	return e
}

type api struct {
	memory  *recall.Memory
	config  Config
	limiter *limiter
}

// register adds the routes, each with who may use it. Each POST takes
// Idempotency-Key: by once, or by onceRead where it writes nothing.
func (a api) register(e *echo.Echo) {
	r := routes{api: a, echo: e, open: make(map[string]bool)}
	e.Use(a.authenticate(r.open))

	r.add(anyone, http.MethodGet, "/healthz", api.healthz)
	r.add(anyone, http.MethodHead, "/healthz", api.healthz)
	r.add(anyone, http.MethodGet, "/readyz", api.readyz)
	r.add(anyone, http.MethodHead, "/readyz", api.readyz)
	r.add(anyone, http.MethodGet, "/openapi.yaml", api.openapi)

	r.add(readers, http.MethodGet, "/api/memory/threads", api.listThreads)
	r.add(writers, http.MethodPost, "/api/memory/threads", once(api.createThread))
	r.add(readers, http.MethodGet, "/api/memory/threads/:threadId", api.getThread)
	r.add(writers, http.MethodPatch, "/api/memory/threads/:threadId", api.updateThread)
	r.add(writers, http.MethodDelete, "/api/memory/threads/:threadId", api.deleteThread)
	r.add(writers, http.MethodPost, "/api/memory/threads/:threadId/transfer", once(api.transferThread))

	r.add(writers, http.MethodPost, "/api/memory/threads/:threadId/clone", once(api.cloneThread))
	r.add(readers, http.MethodGet, "/api/memory/threads/:threadId/clones", api.listClones)
	r.add(readers, http.MethodGet, "/api/memory/threads/:threadId/source", api.getSource)
	r.add(readers, http.MethodGet, "/api/memory/threads/:threadId/clone-history", api.getCloneHistory)

	const workingMemory = "/api/memory/threads/:threadId/working-memory"
	r.add(readers, http.MethodGet, workingMemory, api.getWorkingMemory)
	r.add(writers, http.MethodPost, workingMemory, once(api.updateWorkingMemory))
	r.add(readers, http.MethodGet, workingMemory+"/versions", api.listWorkingMemoryVersions)
	r.add(writers, http.MethodPost, workingMemory+"/restore", once(api.restoreWorkingMemory))
	r.add(readers, http.MethodGet, workingMemory+"/instruction", api.getWorkingMemoryInstruction)
	r.add(readers, http.MethodGet, workingMemory+"/tool", api.getWorkingMemoryTool)

	r.add(writers, http.MethodPost, "/api/memory/save-messages", embedded(once(api.saveMessages)))
	r.add(writers, http.MethodPatch, "/api/memory/messages", api.updateMessages)
	r.add(writers, http.MethodPost, "/api/memory/messages/delete", once(api.deleteMessages))
	r.add(writers, http.MethodDelete, "/api/memory/threads/:threadId/messages", api.deleteThreadMessages)

	r.add(readers, http.MethodGet, "/api/memory/threads/:threadId/messages", api.listMessages)
	r.add(readers, http.MethodPost, "/api/memory/recall", onceRead(api.recall))
	r.add(readers, http.MethodGet, "/api/memory/search", api.search)

	const processors = "/api/memory/processors"
	r.add(readers, http.MethodPost, "/api/memory/context", onceRead(api.context))
	r.add(readers, http.MethodPost, processors+"/semantic-recall/input", onceRead(before((*recall.Memory).RecallForTurn)))
	r.add(writers, http.MethodPost, processors+"/semantic-recall/output", once(api.saveTurn))
	r.add(readers, http.MethodPost, processors+"/working-memory/input", onceRead(before((*recall.Memory).InstructionForTurn)))
	r.add(writers, http.MethodPost, processors+"/working-memory/output", once(api.saveTurn))
	r.add(readers, http.MethodPost, processors+"/message-history/input", onceRead(before((*recall.Memory).HistoryForTurn)))
	r.add(writers, http.MethodPost, processors+"/message-history/output", once(api.saveTurn))

	r.add(readers, http.MethodGet, "/api/memory/status", api.status)
	r.add(readers, http.MethodGet, "/api/memory/config", api.getConfig)
	r.add(operators, http.MethodPut, "/api/memory/config", api.putConfig)

	r.add(readers, http.MethodGet, "/api/memory/resources/:resourceId", api.getResource)
	r.add(writers, http.MethodDelete, "/api/memory/resources/:resourceId", api.eraseResource)

	r.add(watchers, http.MethodGet, "/api/memory/jobs", api.listJobs)
	r.add(operators, http.MethodPost, "/api/memory/jobs/retry", once(api.retryJobs))
}
