package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/pgrecall/pgrecall/db"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/jobs"
	"github.com/pgrecall/pgrecall/server"
	"github.com/pgrecall/pgrecall/server/token"
)

const (
	// headerTimeout bounds the wait for a request's header, idleTimeout that for
	// the next request on a connection.
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// writeMargin is what a client gets to read its answer.
	writeMargin = 30 * time.Second
)

type serveCommand struct {
	databaseSettings `embed:""`
	listenSettings   `embed:""`
	authSettings     `embed:"" group:"Callers"`
	embedderSettings `embed:""`
	chatSettings     `embed:"" group:"Titles"`
	limitSettings    `embed:"" group:"Limits"`
	Migrate          bool `name:"migrate" env:"PGRECALL_MIGRATE" help:"Bring the schema up to date first."`
}

// Validate refuses settings that do not go together.
func (c *serveCommand) Validate() error {
	return errors.Join(
		c.databaseSettings.validate(), c.authSettings.validate(), c.embedderSettings.validate(), c.chatSettings.validate(),
	)
}

// Run serves until the context ends.
func (c *serveCommand) Run(ctx context.Context, term terminal) error {
	logger := slog.New(slog.NewJSONHandler(term.log, nil))
	if err := c.prepareSchema(ctx, logger); err != nil {
		return err
	}
	requestTime := time.Duration(c.MaxRequestTime)
	pool, err := db.Open(ctx, db.Config{
		URL:              c.DatabaseURL,
		MaxConns:         int32(c.MaxConnections),
		StatementTimeout: requestTime,
		LockTimeout:      requestTime,
	})
	if err != nil {
		return err
	}
	defer pool.Close()
	embedder, options, err := c.open()
	if err != nil {
		return err
	}
	if options, err = c.withChat(options); err != nil {
		return err
	}
	memory := recall.New(pool, c.limits(), options...)
	if err := c.check(ctx, memory, embedder, term.log); err != nil {
		return err
	}
	keys := recall.NewKeyring(memory)
	defer keys.Close()
	tokens, closed, err := c.credentials(ctx, keys)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", string(c.Addr))
	if err != nil {
		return fmt.Errorf("PGRECALL_ADDR (--addr): %w", err)
	}
	handler := server.New(memory, server.Config{
		Logger:         logger,
		BodyBytes:      int64(c.MaxBodyBytes),
		JSONDepth:      int(c.MaxJSONDepth),
		RequestTimeout: requestTime,
		Keys:           keys,
		Tokens:         tokens,
		RateLimit:      int(c.RateLimit),
		RateBurst:      c.burst(),
		CORSOrigins:    c.CORSOrigins,
		Loopback:       c.Addr.loopback(),
	})
	stopWorkers, err := c.startWorkers(ctx, logger, embedder, options)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	// Workers stop while the requests that run are finished.
	stopped := make(chan error, 1)
	stopNow := context.AfterFunc(ctx, func() { stopped <- stopWorkers() })
	c.announce(term, listener.Addr(), closed)
	err = serve(ctx, listener, &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       headerTimeout + requestTime,
		WriteTimeout:      headerTimeout + requestTime + writeMargin,
		IdleTimeout:       idleTimeout,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}, requestTime)
	if stopNow() { // the server ended before the context did
		stopped <- stopWorkers()
	}
	return errors.Join(err, <-stopped)
}

// credentials gives the tokens that are taken, and says whether callers need a
// credential. Where they do not, others must not reach the server.
func (c *serveCommand) credentials(ctx context.Context, keys *recall.Keyring) (tokens *token.Verifier, closed bool, err error) {
	if tokens, err = c.tokens(); err != nil || tokens != nil {
		return tokens, true, err
	}
	if closed, err = keys.Exist(ctx); err == nil && !closed {
		err = c.checkOpen()
	}
	return nil, closed, err
}

// workerConnections are for the jobs alone, so that requests do not wait for them:
// one listens, and the workers, which are many more, need one now and then.
const workerConnections = 8

// startWorkers works on jobs beside the requests, and gives what stops it, with as
// much grace as a request has.
func (c *serveCommand) startWorkers(
	ctx context.Context, logger *slog.Logger, embedder embed.Embedder, options []recall.Option,
) (stop func() error, err error) {
	requestTime := time.Duration(c.MaxRequestTime)
	pool, err := db.Open(ctx, db.Config{URL: c.DatabaseURL, MaxConns: workerConnections, LockTimeout: requestTime})
	if err != nil {
		return nil, err
	}
	memory := recall.New(pool, c.limits(), options...)
	config := jobs.Config{
		Pool:         pool,
		Logger:       logger,
		EmbedTimeout: embedBudgets * time.Duration(c.Timeout),
		Tries:        int(c.Tries),
		Tasks:        tasks(memory),
	}
	if embedder != nil {
		config.Embed, config.Model, config.Dimensions = memory.EmbedMessages, embedder.Model(), embedder.Dimensions()
	}
	if c.ChatURL != "" {
		config.Title, config.TitleTries = memory.GenerateTitle, int(c.ChatTries)
		config.TitleTimeout = titleBudgets * time.Duration(c.ChatTimeout)
	}
	workers, err := jobs.Start(context.WithoutCancel(ctx), config)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return func() error {
		defer pool.Close()
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
		defer cancel()
		return workers.Stop(stopping)
	}, nil
}

// taskEvery is the time between two runs of a task.
const taskEvery = 10 * time.Minute

// tasks are what is due from time to time.
func tasks(memory *recall.Memory) []jobs.Task {
	return []jobs.Task{
		{Name: "promote", Every: taskEvery, Do: func(ctx context.Context) error {
			return memory.Promote(ctx, "", func(string, int, int) {})
		}},
		{Name: "forget_keys", Every: taskEvery, Do: memory.ForgetKeys},
		{Name: "retain", Every: taskEvery, Do: memory.Retain},
	}
}

// embedBudgets is the time of a job in times of a request to the embedder: a
// request together with others, one alone, a probe after each, and some more to wait
// for their turn and for storing.
const embedBudgets = 6

// titleBudgets is the time of a title's job in times of a request: what its messages
// can change in the meantime, and some more for storing.
const titleBudgets = 4

// prepareSchema migrates where that is asked for, and else refuses a schema that
// lacks what the statements need.
func (c *serveCommand) prepareSchema(ctx context.Context, logger *slog.Logger) error {
	if c.Migrate {
		applied, err := db.Migrate(ctx, c.DatabaseURL)
		for _, name := range applied {
			logger.InfoContext(ctx, "migrated", slog.String("migration", name))
		}
		return err
	}
	status, err := db.Status(ctx, c.DatabaseURL)
	if err != nil {
		return err
	}
	if len(status.Pending) > 0 {
		return fmt.Errorf("the schema is at version %d of %d: run pgrecall migrate up, or serve with PGRECALL_MIGRATE=true (--migrate)",
			status.Current, status.Latest)
	}
	return nil
}

// announce says where the server answers, to whom, and how to try it.
func (c *serveCommand) announce(term terminal, bound net.Addr, closed bool) {
	base := "http://" + reachable(bound)
	access, header := "There are no credentials: only this machine can reach it.", ""
	switch {
	case closed:
		access, header = "Requests need a credential; pgrecall key create makes a key.", ` -H "Authorization: Bearer $KEY"`
	case !c.Addr.loopback():
		access = "There are no credentials: WHOEVER CAN REACH IT CAN READ AND CHANGE EVERYTHING."
	}
	_, _ = fmt.Fprintf(term.out, `The API is at %s/api
%s
Try it:
  curl -s %s/api/memory/threads%s -H 'Content-Type: application/json' -d '{"resourceId":"me","title":"First thread"}'
`, base, access, base, header)
}

// reachable gives an address under which this machine reaches the listener,
// which may be bound to all addresses.
func reachable(bound net.Addr) string {
	tcp, ok := bound.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return bound.String()
	}
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(tcp.Port))
}

// serve answers until the context ends. Then it takes no new connections and
// gives the requests that run so much grace to finish.
func serve(ctx context.Context, listener net.Listener, s *http.Server, grace time.Duration) error {
	stopped := make(chan error, 1)
	go func() { stopped <- s.Serve(listener) }()
	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := s.Shutdown(stopping); err != nil {
		return errors.Join(fmt.Errorf("some requests did not finish within %s", grace), s.Close())
	}
	return nil
}
