package main

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgrecall/pgrecall/bench/dataset"
	"github.com/pgrecall/pgrecall/recall"
	chat "github.com/pgrecall/pgrecall/recall/chat/remote"
	"github.com/pgrecall/pgrecall/recall/embed/remote"
	"github.com/pgrecall/pgrecall/server"
	"github.com/pgrecall/pgrecall/server/token"
)

// The settings of all commands are here, and read from the environment nowhere
// else. Each is a flag and a variable.

// databaseSettings say which database a command works on.
type databaseSettings struct {
	DatabaseURL string `name:"database-url" env:"DATABASE_URL" placeholder:"URL" help:"The database, as postgres://user:password@host:port/name."`
}

func (s databaseSettings) validate() error {
	if s.DatabaseURL == "" {
		return errors.New("DATABASE_URL (--database-url) is not set")
	}
	if _, err := pgconn.ParseConfig(s.DatabaseURL); err != nil {
		return fmt.Errorf("DATABASE_URL (--database-url): %w", err)
	}
	return nil
}

// outputSettings say how a command prints its result.
type outputSettings struct {
	JSON bool `name:"json" help:"Print the result as JSON."`
}

// listenSettings say where serve answers.
type listenSettings struct {
	Addr     address `name:"addr" env:"PGRECALL_ADDR" default:"127.0.0.1:8080" help:"The address to listen on."`
	Insecure bool    `name:"insecure" env:"PGRECALL_INSECURE" help:"Listen on other than loopback addresses although there are no credentials."`
}

// checkOpen keeps a server that asks no one for a credential on its own machine.
func (s listenSettings) checkOpen() error {
	if s.Insecure || s.Addr.loopback() {
		return nil
	}
	return usageError{fmt.Errorf("PGRECALL_ADDR (--addr): %s can be reached from other machines and there are no credentials; "+
		"make a key with pgrecall key create, listen on 127.0.0.1, or accept that with PGRECALL_INSECURE=true (--insecure)", s.Addr)}
}

// authSettings say which callers serve lets in beside those with an API key, and how
// often.
type authSettings struct {
	JWTSecret   *string    `name:"jwt-secret" env:"PGRECALL_JWT_SECRET" placeholder:"TEXT" help:"Take JSON Web Tokens signed by HS256 with this, of at least 32 bytes."`
	JWKSURL     given      `name:"jwks-url" env:"PGRECALL_JWKS_URL" placeholder:"URL" help:"Take JSON Web Tokens signed with the keys that are there."`
	JWTClaim    given      `name:"jwt-claim" env:"PGRECALL_JWT_CLAIM" default:"${jwt_claim}" help:"The claim that is the caller's resource."`
	JWTAudience given      `name:"jwt-audience" env:"PGRECALL_JWT_AUDIENCE" placeholder:"TEXT" help:"What the tokens' aud must have."`
	JWTIssuer   given      `name:"jwt-issuer" env:"PGRECALL_JWT_ISSUER" placeholder:"TEXT" help:"What the tokens' iss must be."`
	RateLimit   number     `name:"rate-limit" env:"PGRECALL_RATE_LIMIT" placeholder:"N" help:"Requests a second of a caller; any number without."`
	RateBurst   number     `name:"rate-burst" env:"PGRECALL_RATE_BURST" placeholder:"N" help:"Requests of a caller at once, where there is a rate limit; as many as in a second without."`
	CORSOrigins originList `name:"cors-origins" env:"PGRECALL_CORS_ORIGINS" placeholder:"URL,..." help:"The origins whose web pages may read answers, or * for all; none without."`
}

// validate refuses settings that do not go together.
func (s authSettings) validate() error {
	if s.RateBurst > 0 && s.RateLimit == 0 {
		return errors.New("PGRECALL_RATE_BURST (--rate-burst) is of no use without PGRECALL_RATE_LIMIT (--rate-limit)")
	}
	_, err := s.tokens()
	return err
}

// tokens gives the tokens to take; nil for none.
func (s authSettings) tokens() (*token.Verifier, error) {
	config := token.Config{
		JWKSURL: string(s.JWKSURL), Claim: string(s.JWTClaim), Audience: string(s.JWTAudience), Issuer: string(s.JWTIssuer),
	}
	setting := "PGRECALL_JWKS_URL (--jwks-url)"
	switch {
	case s.JWTSecret != nil && s.JWKSURL != "":
		return nil, errors.New("PGRECALL_JWT_SECRET (--jwt-secret) and PGRECALL_JWKS_URL (--jwks-url) do not go together")
	case s.JWTSecret != nil:
		// Not read by a type of its own: kong shows the values that such a type refuses.
		setting, config.Secret = "PGRECALL_JWT_SECRET (--jwt-secret)", *s.JWTSecret
		if len(config.Secret) < token.MinSecretBytes {
			return nil, fmt.Errorf("%s: want at least %d bytes", setting, token.MinSecretBytes)
		}
	case s.JWKSURL == "" && (s.JWTAudience != "" || s.JWTIssuer != ""):
		return nil, errors.New("PGRECALL_JWT_AUDIENCE (--jwt-audience) and PGRECALL_JWT_ISSUER (--jwt-issuer) are of no use without " +
			"PGRECALL_JWT_SECRET (--jwt-secret) or PGRECALL_JWKS_URL (--jwks-url)")
	case s.JWKSURL == "":
		return nil, nil
	}
	verifier, err := token.New(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	return verifier, nil
}

// burst gives how many requests a caller may send at once.
func (s authSettings) burst() int {
	if s.RateBurst == 0 {
		return int(s.RateLimit)
	}
	return int(s.RateBurst)
}

// keySettings say what a new API key is.
type keySettings struct {
	Name     string   `name:"name" env:"PGRECALL_NAME" help:"What the list of keys calls it."`
	Admin    bool     `name:"admin" env:"PGRECALL_ADMIN" help:"Let it reach everything, agents' configurations and jobs included."`
	Resource given    `name:"resource" env:"PGRECALL_RESOURCE" placeholder:"ID" help:"Let it reach this resource alone."`
	Prefix   given    `name:"prefix" env:"PGRECALL_PREFIX" placeholder:"TEXT" help:"Let it reach the resources alone whose ids begin with this."`
	ReadOnly bool     `name:"read-only" env:"PGRECALL_READ_ONLY" help:"Let it change nothing."`
	Expires  lifetime `name:"expires" env:"PGRECALL_EXPIRES" placeholder:"TIME" help:"After how long it ends, as 12h or 90d; never without."`
}

// validate refuses settings that do not go together.
func (s keySettings) validate() error {
	reaches := 0
	for _, given := range []bool{s.Admin, s.Resource != "", s.Prefix != ""} {
		if given {
			reaches++
		}
	}
	if reaches > 1 {
		return errors.New("PGRECALL_ADMIN (--admin), PGRECALL_RESOURCE (--resource) and PGRECALL_PREFIX (--prefix) do not go together")
	}
	return nil
}

func (s keySettings) newKey() recall.NewAPIKey {
	return recall.NewAPIKey{
		Name: s.Name, Admin: s.Admin, Resource: string(s.Resource), Prefix: string(s.Prefix), ReadOnly: s.ReadOnly,
		Lifetime: time.Duration(s.Expires),
	}
}

// embedderSettings say what gives texts their vectors.
type embedderSettings struct {
	Embedder       embedderName `name:"embedder" env:"PGRECALL_EMBEDDER" default:"static" help:"What gives texts their vectors: static (in this program), openai (a service with OpenAI's /v1/embeddings), or none (search by words only)."`
	URL            string       `name:"embedder-url" env:"PGRECALL_EMBEDDER_URL" placeholder:"URL" help:"Where the service is, as http://host:11434/v1; OpenAI's own without."`
	Key            string       `name:"embedder-key" env:"PGRECALL_EMBEDDER_KEY" help:"The service's key, where it wants one."`
	Model          string       `name:"embedder-model" env:"PGRECALL_EMBEDDER_MODEL" help:"The name of the model."`
	Dimensions     number       `name:"embedder-dimensions" env:"PGRECALL_EMBEDDER_DIMENSIONS" help:"The length of vectors to ask the service for; the model's own without."`
	MaxTokens      number       `name:"embedder-max-tokens" env:"PGRECALL_EMBEDDER_MAX_TOKENS" help:"How many tokens of a text the model reads; texts are cut at about 350 without."`
	QueryPrefix    string       `name:"embedder-query-prefix" env:"PGRECALL_EMBEDDER_QUERY_PREFIX" placeholder:"TEXT" help:"What the model wants before a question."`
	DocumentPrefix string       `name:"embedder-document-prefix" env:"PGRECALL_EMBEDDER_DOCUMENT_PREFIX" placeholder:"TEXT" help:"What the model wants before a message."`
	BatchSize      number       `name:"embedder-batch-size" env:"PGRECALL_EMBEDDER_BATCH_SIZE" default:"32" help:"The most texts of one request to the service."`
	Concurrency    number       `name:"embedder-concurrency" env:"PGRECALL_EMBEDDER_CONCURRENCY" default:"8" help:"The most requests to the service at once, for questions and for messages apart."`
	Timeout        span         `name:"embedder-timeout" env:"PGRECALL_EMBEDDER_TIMEOUT" default:"10s" help:"Time for a request to the service, as 10s; that for a question is made up to three times."`
	Tries          number       `name:"embedder-tries" env:"PGRECALL_EMBEDDER_TRIES" default:"5" help:"How often a message is tried that the service rejects while it takes others."`
}

// validate refuses settings that do not go together.
func (s embedderSettings) validate() error {
	if s.Embedder != embedderOpenAI {
		if s.URL != "" || s.Model != "" {
			return fmt.Errorf("PGRECALL_EMBEDDER_URL (--embedder-url) and PGRECALL_EMBEDDER_MODEL (--embedder-model) are for PGRECALL_EMBEDDER=openai (--embedder=openai), and it is %s", s.Embedder)
		}
		return nil
	}
	if s.Model == "" {
		return errors.New("PGRECALL_EMBEDDER_MODEL (--embedder-model) is not set")
	}
	client, err := remote.NewOpenAI(s.openAI())
	if err != nil {
		return fmt.Errorf("PGRECALL_EMBEDDER_... (--embedder-...): %w", err)
	}
	client.Close()
	return nil
}

func (s embedderSettings) openAI() remote.OpenAIConfig {
	return remote.OpenAIConfig{
		BaseURL: s.URL, Key: s.Key, Model: s.Model, Dimensions: int(s.Dimensions), MaxTokens: int(s.MaxTokens),
		QueryPrefix: s.QueryPrefix, DocumentPrefix: s.DocumentPrefix,
		BatchSize: int(s.BatchSize), Concurrency: int(s.Concurrency), Timeout: time.Duration(s.Timeout),
	}
}

// chatSettings say what makes titles.
type chatSettings struct {
	ChatURL     string `name:"chat-url" env:"PGRECALL_CHAT_URL" placeholder:"URL" help:"Where a service with OpenAI's /v1/chat/completions is, as http://host:11434/v1, to make titles of threads; none are made without."`
	ChatKey     string `name:"chat-key" env:"PGRECALL_CHAT_KEY" help:"The service's key, where it wants one."`
	ChatModel   string `name:"chat-model" env:"PGRECALL_CHAT_MODEL" help:"The name of the model, where an agent names none."`
	ChatTimeout span   `name:"chat-timeout" env:"PGRECALL_CHAT_TIMEOUT" default:"${chat_timeout}" help:"Time for a request to the service, as 30s."`
	ChatTries   number `name:"chat-tries" env:"PGRECALL_CHAT_TRIES" default:"5" help:"How often a title is tried that the service refuses."`
}

// validate refuses settings that do not go together.
func (s chatSettings) validate() error {
	switch {
	case s.ChatURL == "" && (s.ChatKey != "" || s.ChatModel != ""):
		return errors.New("PGRECALL_CHAT_KEY (--chat-key) and PGRECALL_CHAT_MODEL (--chat-model) are of no use without PGRECALL_CHAT_URL (--chat-url)")
	case s.ChatURL == "":
		return nil
	case s.ChatModel == "":
		return errors.New("PGRECALL_CHAT_URL (--chat-url) needs PGRECALL_CHAT_MODEL (--chat-model), which is not set")
	}
	client, err := chat.NewOpenAI(s.chat())
	if err != nil {
		return fmt.Errorf("PGRECALL_CHAT_... (--chat-...): %w", err)
	}
	client.Close()
	return nil
}

func (s chatSettings) chat() chat.Config {
	return chat.Config{BaseURL: s.ChatURL, Key: s.ChatKey, Model: s.ChatModel, Timeout: time.Duration(s.ChatTimeout)}
}

// indexSettings say what an embedding index is for.
type indexSettings struct {
	Model          string    `name:"model" required:"" env:"PGRECALL_MODEL" help:"The name of the model that it has vectors of."`
	Dimensions     number    `name:"dimensions" required:"" env:"PGRECALL_DIMENSIONS" help:"Their length, up to 4000."`
	Graph          graphName `name:"graph" env:"PGRECALL_GRAPH" default:"large" help:"Which vectors the HNSW graph has: large (of resources of more than 5000), all or none."`
	M              number    `name:"hnsw-m" env:"PGRECALL_HNSW_M" default:"16" help:"Links of a vector in the graph, 2 to 100."`
	EfConstruction number    `name:"hnsw-ef-construction" env:"PGRECALL_HNSW_EF_CONSTRUCTION" default:"64" help:"Candidates for these links, twice as many up to 1000."`
}

// forceSettings let a command do what it would refuse.
type forceSettings struct {
	Force bool `name:"force" env:"PGRECALL_FORCE" help:"Do it although something speaks against it."`
}

// confirmSettings say that nobody need be asked.
type confirmSettings struct {
	Yes bool `name:"yes" env:"PGRECALL_YES" help:"Do not ask."`
}

// limitSettings bound what serve takes.
type limitSettings struct {
	MaxBodyBytes          number `name:"max-body-bytes" env:"PGRECALL_MAX_BODY_BYTES" default:"${body_bytes}" help:"Bytes of a request's body, as sent and as inflated."`
	MaxContentBytes       number `name:"max-content-bytes" env:"PGRECALL_MAX_CONTENT_BYTES" default:"${content_bytes}" help:"Bytes of a message's content."`
	MaxMetadataBytes      number `name:"max-metadata-bytes" env:"PGRECALL_MAX_METADATA_BYTES" default:"${metadata_bytes}" help:"Bytes of a thread's metadata."`
	MaxWorkingMemoryBytes number `name:"max-working-memory-bytes" env:"PGRECALL_MAX_WORKING_MEMORY_BYTES" default:"${working_memory_bytes}" help:"Bytes of a working memory."`
	MaxTitleBytes         number `name:"max-title-bytes" env:"PGRECALL_MAX_TITLE_BYTES" default:"${title_bytes}" help:"Bytes of a thread's title."`
	MaxIDBytes            number `name:"max-id-bytes" env:"PGRECALL_MAX_ID_BYTES" default:"${id_bytes}" help:"Bytes of an id."`
	MaxJSONDepth          number `name:"max-json-depth" env:"PGRECALL_MAX_JSON_DEPTH" default:"${json_depth}" help:"Nesting of content, metadata and filters."`
	MaxMessages           number `name:"max-messages" env:"PGRECALL_MAX_MESSAGES" default:"${messages}" help:"Messages of one save, update or delete."`
	MaxPerPage            number `name:"max-per-page" env:"PGRECALL_MAX_PER_PAGE" default:"${per_page}" help:"Messages or threads of a page."`
	MaxPage               number `name:"max-page" env:"PGRECALL_MAX_PAGE" default:"${page}" help:"Number of a page."`
	MaxIncludeItems       number `name:"max-include-items" env:"PGRECALL_MAX_INCLUDE_ITEMS" default:"${include_items}" help:"Items of include."`
	MaxContextWidth       number `name:"max-context-width" env:"PGRECALL_MAX_CONTEXT_WIDTH" default:"${context_width}" help:"Messages before or after an included one."`
	MaxQuestionBytes      number `name:"max-question-bytes" env:"PGRECALL_MAX_QUESTION_BYTES" default:"${question_bytes}" help:"Bytes of the question of a search."`
	MaxTopK               number `name:"max-top-k" env:"PGRECALL_MAX_TOP_K" default:"${top_k}" help:"Messages that a search finds."`
	MaxMetadataPairs      number `name:"max-metadata-pairs" env:"PGRECALL_MAX_METADATA_PAIRS" default:"${metadata_pairs}" help:"Pairs of a metadata filter."`
	MaxWhereOperators     number `name:"max-where-operators" env:"PGRECALL_MAX_WHERE_OPERATORS" default:"${where_operators}" help:"Comparisons of a where filter."`
	MaxRequestTime        span   `name:"max-request-time" env:"PGRECALL_MAX_REQUEST_TIME" default:"${request_time}" help:"Time for a request, as 30s."`
	MaxConnections        number `name:"max-connections" env:"PGRECALL_MAX_CONNECTIONS" default:"10" help:"Connections to the database that requests share; jobs have up to 8 of their own."`
}

// benchSettings say what bench measures, and on how much.
type benchSettings struct {
	Scale    number `name:"scale" env:"PGRECALL_SCALE" default:"${bench_messages}" placeholder:"MESSAGES" help:"About how many messages to measure on."`
	Duration span   `name:"duration" env:"PGRECALL_DURATION" default:"5s" help:"How long to measure each operation, as 5s."`
	Rounds   number `name:"rounds" env:"PGRECALL_ROUNDS" default:"10" help:"In how many turns."`
	Check    bool   `name:"check" env:"PGRECALL_CHECK" help:"Fail when an operation is out of all proportion, to its bare SQL or to a page of a small thread, or when a search finds too few of the nearest."`
}

// evalSettings say what eval asks, and how it counts.
type evalSettings struct {
	Modes modeList `name:"modes" env:"PGRECALL_MODES" default:"hybrid,semantic,lexical" help:"The modes to search in, separated by commas."`
	K     number   `name:"k" env:"PGRECALL_K" default:"10" help:"How many hits count for any@k and tokens; recall is counted at 5, 10, 20 and 50 too."`
}

// validate refuses more hits than a search gives, and modes that need an embedder
// where there is none.
func (s evalSettings) validate(embedder embedderName) error {
	if most := recall.DefaultLimits().TopK; int(s.K) > most {
		return fmt.Errorf("PGRECALL_K (--k): want at most %d", most)
	}
	if embedder == embedderNone && !slices.Equal(s.Modes, modeList{recall.Lexical}) {
		return errors.New("PGRECALL_MODES (--modes): without an embedder only lexical works")
	}
	return nil
}

// limits gives those that the memory keeps.
func (s limitSettings) limits() recall.Limits {
	return recall.Limits{
		IDBytes:            int(s.MaxIDBytes),
		WorkingMemoryBytes: int(s.MaxWorkingMemoryBytes),
		TitleBytes:         int(s.MaxTitleBytes),
		ContentBytes:       int(s.MaxContentBytes),
		MetadataBytes:      int(s.MaxMetadataBytes),
		JSONDepth:          int(s.MaxJSONDepth),
		Messages:           int(s.MaxMessages),
		PerPage:            int(s.MaxPerPage),
		Page:               int(s.MaxPage),
		IncludeItems:       int(s.MaxIncludeItems),
		ContextWidth:       int(s.MaxContextWidth),
		QuestionBytes:      int(s.MaxQuestionBytes),
		TopK:               int(s.MaxTopK),
		MetadataPairs:      int(s.MaxMetadataPairs),
		WhereOperators:     int(s.MaxWhereOperators),
	}
}

// defaults fills in the defaults that other packages decide on.
func defaults() kong.Vars {
	limits := recall.DefaultLimits()
	vars := kong.Vars{"request_time": server.DefaultRequestTimeout.String(), "chat_timeout": chat.DefaultTimeout.String(), "jwt_claim": token.DefaultClaim}
	for name, value := range map[string]int{
		"bench_messages":       dataset.DefaultMessages,
		"body_bytes":           server.DefaultBodyBytes,
		"content_bytes":        limits.ContentBytes,
		"metadata_bytes":       limits.MetadataBytes,
		"working_memory_bytes": limits.WorkingMemoryBytes,
		"title_bytes":          limits.TitleBytes,
		"id_bytes":             limits.IDBytes,
		"json_depth":           limits.JSONDepth,
		"messages":             limits.Messages,
		"per_page":             limits.PerPage,
		"page":                 limits.Page,
		"include_items":        limits.IncludeItems,
		"context_width":        limits.ContextWidth,
		"question_bytes":       limits.QuestionBytes,
		"top_k":                limits.TopK,
		"metadata_pairs":       limits.MetadataPairs,
		"where_operators":      limits.WhereOperators,
	} {
		vars[name] = strconv.Itoa(value)
	}
	return vars
}

// number is an integer from 1.
type number int32

// UnmarshalText reads a number.
func (n *number) UnmarshalText(text []byte) error {
	value, err := strconv.ParseInt(string(text), 10, 32)
	if err != nil || value < 1 {
		return errors.New("want an integer from 1 to 2147483647")
	}
	*n = number(value)
	return nil
}

// embedderName names an embedder.
type embedderName string

// The embedders.
const (
	embedderStatic embedderName = "static"
	embedderOpenAI embedderName = "openai"
	embedderNone   embedderName = "none"
)

// UnmarshalText reads the name of an embedder.
func (n *embedderName) UnmarshalText(text []byte) error {
	*n = embedderName(text)
	if *n != embedderStatic && *n != embedderOpenAI && *n != embedderNone {
		return errors.New("want static, openai or none")
	}
	return nil
}

// graphName says which vectors a graph has.
type graphName string

// UnmarshalText reads which vectors a graph has.
func (n *graphName) UnmarshalText(text []byte) error {
	*n = graphName(text)
	if graph := recall.Graph(text); graph != recall.GraphLarge && graph != recall.GraphAll && graph != recall.GraphNone {
		return errors.New("want large, all or none")
	}
	return nil
}

// modeList is a list of modes of a search.
type modeList []recall.Mode

// UnmarshalText reads modes that are separated by commas.
func (l *modeList) UnmarshalText(text []byte) error {
	*l = nil
	for name := range strings.SplitSeq(string(text), ",") {
		mode := recall.Mode(name)
		switch {
		case mode != recall.Hybrid && mode != recall.Semantic && mode != recall.Lexical:
			return errors.New("want hybrid, semantic, lexical or several of them, separated by commas")
		case slices.Contains(*l, mode):
			return fmt.Errorf("%s is given twice", mode)
		}
		*l = append(*l, mode)
	}
	return nil
}

// span is a duration above zero.
type span time.Duration

// UnmarshalText reads a duration in Go's notation.
func (s *span) UnmarshalText(text []byte) error {
	value, err := time.ParseDuration(string(text))
	if err != nil || value <= 0 {
		return errors.New("want a duration above zero, such as 30s")
	}
	*s = span(value)
	return nil
}

// given is a text that bounds who gets in, or how far. An empty one, of a variable that
// is not set, would be no bound at all.
type given string

// UnmarshalText reads a text.
func (g *given) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errors.New("must not be empty")
	}
	*g = given(text)
	return nil
}

// originList is a list of the origins of web pages.
type originList []string

// UnmarshalText reads origins that are separated by commas.
func (l *originList) UnmarshalText(text []byte) error {
	*l = nil
	for origin := range strings.SplitSeq(string(text), ",") {
		address, err := url.Parse(origin)
		if origin != "*" && (err != nil || address.Host == "" || origin != address.Scheme+"://"+address.Host || strings.ContainsAny(origin, "*?@")) {
			return errors.New("want *, or origins such as https://app.example.com, separated by commas")
		}
		*l = append(*l, origin)
	}
	return nil
}

// lifetime is a duration above zero that may be of days.
type lifetime time.Duration

// maxDays is how many days a duration holds.
const maxDays = math.MaxInt64 / int64(24*time.Hour)

// UnmarshalText reads a duration in Go's notation, or a number of days.
func (l *lifetime) UnmarshalText(text []byte) error {
	if number, ok := strings.CutSuffix(string(text), "d"); ok {
		if days, err := strconv.ParseInt(number, 10, 64); err == nil && days > 0 && days <= maxDays {
			*l = lifetime(days * int64(24*time.Hour))
			return nil
		}
	}
	if (*span)(l).UnmarshalText(text) != nil {
		return errors.New("want a time above zero, such as 12h or 90d")
	}
	return nil
}

// address is a host and a port.
type address string

// UnmarshalText reads an address.
func (a *address) UnmarshalText(text []byte) error {
	_, port, err := net.SplitHostPort(string(text))
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return errors.New("want a host and a port, such as 127.0.0.1:8080")
	}
	*a = address(text)
	return nil
}

// loopback says whether only this machine can reach the address. A name other
// than localhost may resolve to anything.
func (a address) loopback() bool {
	host, _, _ := net.SplitHostPort(string(a))
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
