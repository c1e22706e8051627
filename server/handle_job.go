package server

import (
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/strictjson"
)

// listJobs gives the jobs that are not done: the dead where they are asked for,
// else the others.
func (a api) listJobs(c echo.Context) error {
	q := a.readQuery(c)
	listing := recall.JobListing{Dead: q.flagOr("dead", false)}
	if q.values.Has("before") {
		listing.BeforeID = q.faults.readJobID("before", q.text("before"))
	}
	if size := q.count("perPage"); size != nil {
		listing.PerPage = *size
		if *size == 0 {
			q.faults.add("perPage", "must be at least 1")
		}
	}
	if err := q.faults.err(); err != nil {
		return err
	}
	jobs, err := a.memory.Jobs(c.Request().Context(), listing)
	if err != nil {
		return err
	}
	return respond(c, append(appendArray([]byte(`{"jobs":`), jobs, appendJob), '}'))
}

// retryJobs gives dead jobs all their tries again: those of the body's ids, or all.
func (a api) retryJobs(c echo.Context) error {
	if err := a.readQuery(c).faults.err(); err != nil {
		return err
	}
	body, f, err := a.readBody(c)
	if err != nil {
		return err
	}
	body.only("ids")
	elements := body.array("ids")
	if elements != nil && len(elements) == 0 {
		f.add("ids", "must not be empty; without it all dead jobs are retried")
	}
	var ids []int64
	for i, element := range elements {
		text, _ := strictjson.Text(element)
		ids = append(ids, f.readJobID(indexed("ids", i), text))
	}
	if err := f.err(); err != nil {
		return err
	}
	retried, err := a.memory.RetryJobs(c.Request().Context(), ids)
	if err != nil {
		return err
	}
	return respond(c, append(strconv.AppendInt([]byte(`{"retried":`), retried, 10), '}'))
}

// readJobID reads the id of a job: a positive integer, as text since JSON's numbers
// end sooner.
func (f *faults) readJobID(path, text string) int64 {
	id, err := strconv.ParseUint(text, 10, 63)
	if err != nil || id == 0 {
		f.add(path, "want the id of a job, a string of digits")
	}
	return int64(id)
}

func appendJob(b []byte, j recall.Job) []byte {
	b = appendText(append(b, `{"id":`...), strconv.FormatInt(j.ID, 10))
	b = appendText(append(b, `,"kind":`...), j.Kind)
	b = appendText(append(b, `,"state":`...), string(j.State))
	b = appendText(append(b, `,"resourceId":`...), j.ResourceID)
	b = appendArray(append(b, `,"messageIds":`...), j.MessageIDs, appendText)
	if j.Kind == recall.JobTitle {
		b = appendText(append(b, `,"threadId":`...), j.ThreadID)
	}
	b = appendTime(append(b, `,"createdAt":`...), j.CreatedAt)
	b = appendTime(append(b, `,"nextTryAt":`...), j.NextTryAt)
	return append(appendTextOrNull(append(b, `,"lastError":`...), j.LastError), '}')
}

// appendBacklog appends what is still to be done after requests that were answered.
func appendBacklog(b []byte, backlog recall.Backlog) []byte {
	b = strconv.AppendInt(append(b, `{"waiting":`...), backlog.Waiting, 10)
	b = appendInt(append(b, `,"oldestSeconds":`...), int(backlog.Oldest.Seconds()))
	return append(strconv.AppendInt(append(b, `,"dead":`...), backlog.Dead, 10), '}')
}
