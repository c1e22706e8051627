package recall

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config says how a memory is used: by an agent, or in one call. It is Mastra's
// MemoryConfig. What is nil is not said, and left to the next one: of the call, of
// the agent, and then the defaults.
type Config struct {
	// LastMessages is how many of the newest messages a recall gives; 0 for none.
	LastMessages *int
	// SemanticRecall says whether a question is searched for, and how.
	SemanticRecall *SemanticRecall
	WorkingMemory  *WorkingMemoryConfig
	// GenerateTitle says whether threads without a title get one, and how.
	GenerateTitle *TitleConfig
	Retention     *Retention
}

// SemanticRecall says how a question is searched for.
type SemanticRecall struct {
	// Off: not at all.
	Off bool
	// Search has all but the question.
	Search Search
}

// WorkingMemoryConfig says what is kept of a user in a text of its own.
type WorkingMemoryConfig struct {
	Enabled bool
	// Scope is ScopeResource when empty: one for all threads of a user.
	Scope Scope
	// Template is Markdown to be filled in; Schema a JSON schema instead. Both
	// empty mean [DefaultTemplate].
	Template string
	Schema   json.RawMessage
}

// TitleConfig says how titles are made.
type TitleConfig struct {
	// Off: not at all.
	Off bool
	// Model is the chat model; empty for the one configured for all.
	Model string
	// Instructions stand in place of ours.
	Instructions string
}

// Retention says how long threads and messages are kept; 0 for ever.
type Retention struct {
	Messages, Threads time.Duration
}

// With gives a configuration with what another one says instead.
func (c Config) With(other Config) Config {
	replace(&c.LastMessages, other.LastMessages)
	replace(&c.SemanticRecall, other.SemanticRecall)
	if other.WorkingMemory != nil {
		c.WorkingMemory = c.WorkingMemory.with(*other.WorkingMemory)
	}
	replace(&c.GenerateTitle, other.GenerateTitle)
	replace(&c.Retention, other.Retention)
	return c
}

// with keeps scope and form where the other one does not say them, so that a call
// that says one of them does not do without the schema of its agent.
func (w *WorkingMemoryConfig) with(other WorkingMemoryConfig) *WorkingMemoryConfig {
	if w == nil {
		return &other
	}
	if other.Scope == "" {
		other.Scope = w.Scope
	}
	if other.Template == "" && len(other.Schema) == 0 {
		other.Template, other.Schema = w.Template, w.Schema
	}
	return &other
}

func replace[T any](value **T, other *T) {
	if other != nil {
		*value = other
	}
}

// SearchFor gives the search for a question; nil without a question, or where
// semantic recall is off.
func (c Config) SearchFor(question string) *Search {
	search := Search{}
	if c.SemanticRecall != nil {
		search = c.SemanticRecall.Search
	}
	if question == "" || c.SemanticRecall != nil && c.SemanticRecall.Off {
		return nil
	}
	search.Question = question
	return &search
}

// ReadConfig reads a configuration as Mastra's clients write it. field names it in
// the issues of the error: "threadConfig".
func (m *Memory) ReadConfig(field string, raw json.RawMessage) (Config, error) {
	c := m.check()
	if len(raw) == 0 {
		return Config{}, nil
	}
	c.object(field, raw, m.limits.MetadataBytes)
	if err := c.err(); err != nil {
		return Config{}, err
	}
	config := c.config(reader{c, field, members(raw)})
	return config, c.err()
}

func (c *checker) config(r reader) Config {
	r.only("lastMessages", "semanticRecall", "workingMemory", "threads", "generateTitle", "retention", "observationalMemory")
	config := Config{
		SemanticRecall: r.semanticRecall(),
		WorkingMemory:  r.workingMemory(),
		GenerateTitle:  r.generateTitle(),
		Retention:      r.retention(),
	}
	if r.isFalse("lastMessages") {
		config.LastMessages = new(int)
	} else {
		config.LastMessages = r.count("lastMessages")
	}
	if threads := r.object("threads"); threads != nil {
		threads.only("generateTitle")
		replace(&config.GenerateTitle, threads.generateTitle())
	}
	if r.object("observationalMemory").flag("enabled") {
		r.fail("observationalMemory", "is not there: leave it out, or disable it")
	}
	return config
}

func (r *reader) semanticRecall() *SemanticRecall {
	const name = "semanticRecall"
	switch {
	case !r.has(name):
		return nil
	case r.isFalse(name):
		return &SemanticRecall{Off: true}
	case r.isTrue(name):
		return &SemanticRecall{}
	}
	o := r.object(name)
	// indexConfig tunes stores whose index is built by the client.
	o.only("topK", "messageRange", "scope", "threshold", "indexName", "filter", "mode", "indexConfig")
	var search Search
	if topK := o.count("topK"); topK != nil {
		search.TopK = *topK
		if *topK == 0 {
			o.fail("topK", "must be at least 1")
		}
	}
	search.Before, search.After = o.messageRange()
	search.Scope = Scope(o.key("scope"))
	search.Threshold = o.number("threshold")
	search.IndexName = o.key("indexName")
	search.Filter = o.values("filter")
	search.Mode = Mode(o.key("mode"))
	return &SemanticRecall{Search: search}
}

// messageRange reads the width of the context of hits: one number for both sides,
// or one for each.
func (r *reader) messageRange() (before, after *int) {
	const name = "messageRange"
	if r.kind(name) != '{' {
		width := r.count(name)
		return width, width
	}
	sides := r.object(name)
	sides.only("before", "after")
	return sides.count("before"), sides.count("after")
}

func (r *reader) workingMemory() *WorkingMemoryConfig {
	const name = "workingMemory"
	switch {
	case !r.has(name):
		return nil
	case r.isTrue(name), r.isFalse(name):
		return &WorkingMemoryConfig{Enabled: r.isTrue(name)}
	}
	o := r.object(name)
	o.only("enabled", "scope", "template", "schema", "version")
	config := WorkingMemoryConfig{Enabled: o.flag("enabled"), Scope: Scope(o.key("scope")), Template: o.text("template")}
	if config.Scope != "" && config.Scope != ScopeResource && config.Scope != ScopeThread {
		o.fail("scope", "must be resource or thread")
	}
	if o.has("schema") {
		if o.has("template") {
			o.fail("schema", "excludes a template")
		}
		if o.object("schema") != nil {
			config.Schema = o.members["schema"]
		}
	}
	return &config
}

func (r *reader) generateTitle() *TitleConfig {
	const name = "generateTitle"
	switch {
	case !r.has(name):
		return nil
	case r.isFalse(name):
		return &TitleConfig{Off: true}
	case r.isTrue(name):
		return &TitleConfig{}
	}
	o := r.object(name)
	o.only("model", "instructions")
	return &TitleConfig{Model: o.key("model"), Instructions: o.key("instructions")}
}

func (r *reader) retention() *Retention {
	if !r.has("retention") {
		return nil
	}
	o := r.object("retention")
	o.only("messages", "threads")
	age := func(name string) time.Duration {
		kept := o.object(name)
		kept.only("maxAge")
		return kept.age("maxAge")
	}
	return &Retention{Messages: age("messages"), Threads: age("threads")}
}

// reader reads the members of an object and notes what is wrong with them. A nil
// one has none.
type reader struct {
	*checker
	path    string
	members map[string]json.RawMessage
}

func (r *reader) has(name string) bool { return r != nil && len(r.members[name]) > 0 }

func (r *reader) fail(name, format string, args ...any) {
	r.checker.fail(joinField(r.path, name), format, args...)
}

func (r *reader) only(names ...string) {
	if r == nil {
		return
	}
	var unknown []string
	for name := range r.members {
		if !slices.Contains(names, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		r.fail(name, "is unknown")
	}
}

// kind is the first byte of a member, 0 where there is none.
func (r *reader) kind(name string) byte {
	if !r.has(name) {
		return 0
	}
	return jsonKind(r.members[name])
}

func (r *reader) isTrue(name string) bool  { return r.kind(name) == 't' }
func (r *reader) isFalse(name string) bool { return r.kind(name) == 'f' }

func (r *reader) object(name string) *reader {
	if !r.has(name) {
		return nil
	}
	if r.kind(name) != '{' {
		r.fail(name, "must be an object")
		return nil
	}
	return &reader{r.checker, joinField(r.path, name), members(r.members[name])}
}

func (r *reader) flag(name string) bool {
	if kind := r.kind(name); kind != 0 && kind != 't' && kind != 'f' {
		r.fail(name, "must be true or false")
	}
	return r.isTrue(name)
}

func (r *reader) text(name string) string {
	if !r.has(name) {
		return ""
	}
	text, ok := jsonText(r.members[name])
	if !ok {
		r.fail(name, "must be a string")
	}
	return text
}

// key is text that is not empty where it is given.
func (r *reader) key(name string) string {
	text := r.text(name)
	if text == "" && r.kind(name) == '"' {
		r.fail(name, "must not be empty")
	}
	return text
}

// count reads an integer from 0; nil where there is none.
func (r *reader) count(name string) *int {
	if !r.has(name) {
		return nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(r.members[name])), 10, 32)
	if err != nil || n < 0 {
		r.fail(name, "must be an integer from 0")
		return nil
	}
	count := int(n)
	return &count
}

func (r *reader) number(name string) *float64 {
	if !r.has(name) {
		return nil
	}
	var number float64
	if r.kind(name) == 'n' || json.Unmarshal(r.members[name], &number) != nil {
		r.fail(name, "must be a number")
		return nil
	}
	return &number
}

// values reads an object of scalars, whose numbers stay as they were written.
func (r *reader) values(name string) map[string]any {
	if r.object(name) == nil {
		return nil
	}
	decoder := json.NewDecoder(strings.NewReader(string(r.members[name])))
	decoder.UseNumber()
	var values map[string]any
	if decoder.Decode(&values) != nil {
		r.fail(name, "must be an object")
	}
	return values
}

// maxAge bounds what is kept by age, at a hundred years.
const maxAge = 36_500 * 24 * time.Hour

// age reads a time like "30d", "12h" or "90m".
func (r *reader) age(name string) time.Duration {
	if !r.has(name) {
		return 0
	}
	text := r.key(name)
	n, err := strconv.ParseInt(strings.TrimRight(text, "dhm"), 10, 32)
	units := map[string]time.Duration{"d": 24 * time.Hour, "h": time.Hour, "m": time.Minute}
	unit := units[strings.TrimLeft(text, "0123456789")]
	if err != nil || n < 1 || unit == 0 || n > int64(maxAge/unit) {
		r.fail(name, `must be a time like "30d", "12h" or "90m", up to 36500d`)
		return 0
	}
	return time.Duration(n) * unit
}
