package server

import (
	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/recall"
)

func (a api) cloneThread(c echo.Context) error {
	id, err := pathID(c, threadIDParam)
	if err != nil {
		return err
	}
	q := a.readQuery(c)
	owner, format, agent := q.key("resourceId"), q.format(), q.key(agentIDParam)
	if err := q.faults.err(); err != nil {
		return err
	}
	body, f, err := a.readBody(c)
	if err != nil {
		return err
	}
	options := body.object("options")
	options.only("messageLimit", "messageFilter")
	selection := options.object("messageFilter")
	selection.only("startDate", "endDate", "messageIds")
	clone := recall.ThreadClone{
		SourceID:         id,
		SourceResourceID: owner,
		ID:               body.key("newThreadId"),
		ResourceID:       body.key("resourceId"),
		Title:            body.textIfGiven("title"),
		Metadata:         body.rawObject("metadata"),
		MessageLimit:     options.count("messageLimit"),
		StartsAt:         selection.date("startDate"),
		EndsAt:           selection.date("endDate"),
		MessageIDs:       selection.texts("messageIds"),
	}
	agent = body.agentOr(agent)
	if err := f.err(); err != nil {
		return err
	}
	if clone.ResourceMemory, err = a.carriesMemory(c, agent, clone.ResourceID); err != nil {
		return err
	}
	cloned, err := a.memory.CloneThread(c.Request().Context(), clone)
	if err != nil {
		return err
	}
	return respond(c, appendClone(nil, cloned, format))
}

// carriesMemory says whether a clone's owner gets the working memory of the source's:
// where the agent of the call has that of resources.
func (a api) carriesMemory(c echo.Context, agent, owner string) (bool, error) {
	if agent == "" || owner == "" {
		return false, nil
	}
	config, err := a.memory.AgentConfig(c.Request().Context(), agent)
	return config.WorkingMemory.Enabled && config.WorkingMemory.Scope != recall.ScopeThread, err
}

func (a api) listClones(c echo.Context) error {
	id, owner, err := a.threadAndOwner(c)
	if err != nil {
		return err
	}
	return answerThreads(c)(a.memory.Clones(c.Request().Context(), id, owner))
}

func (a api) getCloneHistory(c echo.Context) error {
	id, owner, err := a.threadAndOwner(c)
	if err != nil {
		return err
	}
	return answerThreads(c)(a.memory.CloneHistory(c.Request().Context(), id, owner))
}

func (a api) getSource(c echo.Context) error {
	id, owner, err := a.threadAndOwner(c)
	if err != nil {
		return err
	}
	source, err := a.memory.SourceThread(c.Request().Context(), id, owner)
	if err != nil {
		return err
	}
	if source == nil {
		return respond(c, []byte(`{"thread":null}`))
	}
	return respond(c, append(appendThread([]byte(`{"thread":`), *source), '}'))
}

// answerThreads writes what a method gave that gives threads.
func answerThreads(c echo.Context) func([]recall.Thread, error) error {
	return func(threads []recall.Thread, err error) error {
		if err != nil {
			return err
		}
		return respond(c, append(appendArray([]byte(`{"threads":`), threads, appendThread), '}'))
	}
}
