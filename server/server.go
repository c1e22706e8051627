// Package server speaks Mastra's memory protocol over HTTP for a
// [recall.Memory].
//
// A handler reads the shape of its request, calls one method of the memory and
// writes the answer. What a request may mean is the memory's to judge. Content
// and metadata pass through as the bytes they came in.
package server

import (
	"log/slog"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/recall"
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
	e.HTTPErrorHandler = writeError
	e.Pre(observe(config.Logger), deadline(config.RequestTimeout), routeEscaped)
	api{memory: memory, config: config}.register(e)
	return e
}

type api struct {
	memory *recall.Memory
	config Config
}

// register adds the routes. Each POST takes Idempotency-Key: by once, or by onceRead
// where it writes nothing.
func (a api) register(e *echo.Echo) {
	e.GET("/healthz", a.healthz)
	e.HEAD("/healthz", a.healthz)
	e.GET("/readyz", a.readyz)
	e.HEAD("/readyz", a.readyz)
	e.GET("/openapi.yaml", a.openapi)

	memory := e.Group("/api/memory")
	memory.GET("/threads", a.listThreads)
	memory.POST("/threads", a.once(api.createThread))
	memory.GET("/threads/:threadId", a.getThread)
	memory.PATCH("/threads/:threadId", a.updateThread)
	memory.DELETE("/threads/:threadId", a.deleteThread)
	memory.POST("/threads/:threadId/transfer", a.once(api.transferThread))

	memory.POST("/threads/:threadId/clone", a.once(api.cloneThread))
	memory.GET("/threads/:threadId/clones", a.listClones)
	memory.GET("/threads/:threadId/source", a.getSource)
	memory.GET("/threads/:threadId/clone-history", a.getCloneHistory)

	memory.GET("/threads/:threadId/working-memory", a.getWorkingMemory)
	memory.POST("/threads/:threadId/working-memory", a.once(api.updateWorkingMemory))
	memory.GET("/threads/:threadId/working-memory/versions", a.listWorkingMemoryVersions)
	memory.POST("/threads/:threadId/working-memory/restore", a.once(api.restoreWorkingMemory))
	memory.GET("/threads/:threadId/working-memory/instruction", a.getWorkingMemoryInstruction)
	memory.GET("/threads/:threadId/working-memory/tool", a.getWorkingMemoryTool)

	memory.POST("/save-messages", a.embedded(a.once(api.saveMessages)))
	memory.PATCH("/messages", a.updateMessages)
	memory.POST("/messages/delete", a.once(api.deleteMessages))
	memory.DELETE("/threads/:threadId/messages", a.deleteThreadMessages)

	memory.GET("/threads/:threadId/messages", a.listMessages)
	memory.POST("/recall", a.onceRead(api.recall))
	memory.GET("/search", a.search)

	memory.POST("/context", a.onceRead(api.context))
	memory.POST("/processors/semantic-recall/input", a.onceRead(before((*recall.Memory).RecallForTurn)))
	memory.POST("/processors/semantic-recall/output", a.once(api.saveTurn))
	memory.POST("/processors/working-memory/input", a.onceRead(before((*recall.Memory).InstructionForTurn)))
	memory.POST("/processors/working-memory/output", a.once(api.saveTurn))
	memory.POST("/processors/message-history/input", a.onceRead(before((*recall.Memory).HistoryForTurn)))
	memory.POST("/processors/message-history/output", a.once(api.saveTurn))

	memory.GET("/status", a.status)
	memory.GET("/config", a.getConfig)
	memory.PUT("/config", a.putConfig)

	memory.GET("/resources/:resourceId", a.getResource)
	memory.DELETE("/resources/:resourceId", a.eraseResource)

	memory.GET("/jobs", a.listJobs)
	memory.POST("/jobs/retry", a.once(api.retryJobs))
}
