package server

import (
	"encoding/json"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/recall"
)

func (a api) getWorkingMemory(c echo.Context) error {
	of, memory, err := a.readWorkingMemory(c)
	if err != nil {
		return err
	}
	c.Response().Header().Set(headerETag, tagOf(memory.Version))
	return respond(c, appendWorkingMemory(nil, of, memory))
}

func (a api) getWorkingMemoryInstruction(c echo.Context) error {
	of, memory, err := a.readWorkingMemory(c)
	if err != nil {
		return err
	}
	c.Response().Header().Set(headerETag, tagOf(memory.Version))
	return respond(c, append(appendText([]byte(`{"instruction":`), of.Config.Instruction(memory.Text)), '}'))
}

func (a api) getWorkingMemoryTool(c echo.Context) error {
	of, _, err := a.readWorkingMemory(c) // whose it is, is checked there
	if err != nil {
		return err
	}
	return respond(c, append(appendTool([]byte(`{"tool":`), of.Config.Tool()), '}'))
}

func (a api) listWorkingMemoryVersions(c echo.Context) error {
	q := a.readQuery(c)
	var before int64
	if q.values.Has("before") {
		before = q.faults.readVersion("before", q.text("before"))
	}
	perPage := recall.KeptVersions
	if size := q.count("perPage"); size != nil {
		perPage = *size
	}
	of, err := a.queriedWorkingMemory(c, q)
	if err != nil {
		return err
	}
	versions, err := a.memory.WorkingMemoryVersions(c.Request().Context(), of, before, perPage)
	if err != nil {
		return err
	}
	return respond(c, append(appendArray([]byte(`{"versions":`), versions, appendVersion), '}'))
}

func (a api) updateWorkingMemory(c echo.Context) error {
	of, body, versions, err := a.readChange(c)
	if err != nil {
		return err
	}
	update := recall.WorkingMemoryUpdate{
		WorkingMemoryOf: of, Versions: versions,
		Text: readWorkingMemoryText(body, of.Config), Merge: body.rawObject("merge"),
	}
	if err := body.faults.err(); err != nil {
		return err
	}
	return answerChange(c)(a.memory.UpdateWorkingMemory(c.Request().Context(), update))
}

func (a api) restoreWorkingMemory(c echo.Context) error {
	of, body, versions, err := a.readChange(c)
	if err != nil {
		return err
	}
	body.must("version")
	var version int64
	if raw := body.raw("version"); raw != nil {
		version = body.faults.readVersion("version", string(raw))
	}
	if err := body.faults.err(); err != nil {
		return err
	}
	return answerChange(c)(a.memory.RestoreWorkingMemory(c.Request().Context(), of, version, versions))
}

// readWorkingMemory reads the working memory that the query is about.
func (a api) readWorkingMemory(c echo.Context) (recall.WorkingMemoryOf, recall.WorkingMemory, error) {
	q := a.readQuery(c)
	of, err := a.queriedWorkingMemory(c, q)
	if err != nil {
		return of, recall.WorkingMemory{}, err
	}
	memory, err := a.memory.WorkingMemory(c.Request().Context(), of)
	return of, memory, err
}

// readChange reads what all changes of a working memory have, but for their body.
func (a api) readChange(c echo.Context) (recall.WorkingMemoryOf, object, []int64, error) {
	none := recall.WorkingMemoryOf{}
	if _, err := pathID(c, threadIDParam); err != nil {
		return none, object{}, nil, err
	}
	q := a.readQuery(c)
	owner, agent := q.key("resourceId"), q.key(agentIDParam)
	if err := q.faults.err(); err != nil {
		return none, object{}, nil, err
	}
	versions, err := ifMatch(c)
	if err != nil {
		return none, object{}, nil, err
	}
	body, f, err := a.readBody(c)
	if err != nil {
		return none, object{}, nil, err
	}
	owner, agent = body.ownerOr(owner), body.agentOr(agent)
	ofCall := body.rawObject("memoryConfig")
	if err := f.err(); err != nil {
		return none, object{}, nil, err
	}
	of, err := a.workingMemoryOf(c, owner, agent, ofCall)
	return of, body, versions, err
}

// queriedWorkingMemory says which working memory a query is about.
func (a api) queriedWorkingMemory(c echo.Context, q query) (recall.WorkingMemoryOf, error) {
	owner, agent, ofCall := q.key("resourceId"), q.key(agentIDParam), q.json("memoryConfig")
	if err := q.faults.err(); err != nil {
		return recall.WorkingMemoryOf{}, err
	}
	return a.workingMemoryOf(c, owner, agent, ofCall)
}

// workingMemoryOf says which working memory is meant: by the thread of the path and
// the configuration that holds.
func (a api) workingMemoryOf(c echo.Context, owner, agent string, ofCall json.RawMessage) (recall.WorkingMemoryOf, error) {
	of := recall.WorkingMemoryOf{ResourceID: owner}
	var err error
	if of.ThreadID, err = pathID(c, threadIDParam); err != nil {
		return of, err
	}
	config, err := a.configOf(c, agent, "memoryConfig", ofCall)
	if config.WorkingMemory != nil {
		of.Config = *config.WorkingMemory
	}
	return of, err
}

// readWorkingMemoryText reads a text or, where a schema is configured, a document.
func readWorkingMemoryText(body object, config recall.WorkingMemoryConfig) *string {
	const name = "workingMemory"
	raw := body.raw(name)
	if raw == nil || kindOf(raw) == "a string" {
		return body.textIfGiven(name)
	}
	if len(config.Schema) == 0 {
		body.fault(name, "must be a string, or needs a schema in the agent's workingMemory")
	}
	text := string(raw)
	return &text
}

// readVersion reads a version that there can have been.
func (f *faults) readVersion(path, text string) int64 {
	version, err := strconv.ParseUint(text, 10, 63)
	if err != nil || version == 0 {
		f.add(path, "want an integer from 1")
	}
	return int64(version)
}

// answerChange writes what a method gave that changes a working memory.
func answerChange(c echo.Context) func(recall.WorkingMemory, error) error {
	return func(memory recall.WorkingMemory, err error) error {
		if err != nil {
			return err
		}
		c.Response().Header().Set(headerETag, tagOf(memory.Version))
		return respond(c, append(appendWorkingMemoryText([]byte(`{"success":true,`), memory), '}'))
	}
}

// appendWorkingMemory appends a working memory as Mastra's clients read it.
func appendWorkingMemory(b []byte, of recall.WorkingMemoryOf, memory recall.WorkingMemory) []byte {
	source := recall.ScopeResource
	if of.Config.Scope == recall.ScopeThread {
		source = recall.ScopeThread
	}
	blank := of.Config.Blank()
	b = appendWorkingMemoryText(append(b, '{'), memory)
	b = appendText(append(b, `,"source":`...), string(source))
	b = appendText(append(b, `,"workingMemoryTemplate":{"format":`...), blank.Format)
	b = appendText(append(b, `,"content":`...), blank.Content)
	b = strconv.AppendBool(append(b, `},"threadExists":`...), memory.ThreadExists)
	return append(b, '}')
}

// appendWorkingMemoryText appends the members that say what is in a working memory;
// nothing is null.
func appendWorkingMemoryText(b []byte, memory recall.WorkingMemory) []byte {
	b = appendTextOrNull(append(b, `"workingMemory":`...), memory.Text)
	b = strconv.AppendInt(append(b, `,"version":`...), memory.Version, 10)
	b = append(b, `,"updatedAt":`...)
	if memory.UpdatedAt.IsZero() {
		return append(b, "null"...)
	}
	return appendTime(b, memory.UpdatedAt)
}

func appendVersion(b []byte, memory recall.WorkingMemory) []byte {
	return append(appendWorkingMemoryText(append(b, '{'), memory), '}')
}

func appendTool(b []byte, tool recall.WorkingMemoryTool) []byte {
	b = appendText(append(b, `{"name":`...), tool.Name)
	b = appendText(append(b, `,"description":`...), tool.Description)
	b = append(append(b, `,"parameters":`...), tool.Parameters...)
	return append(b, '}')
}
