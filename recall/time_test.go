package recall_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
)

// inZone adds the time zone of sessions to the address of a database.
func inZone(t *testing.T, address, zone string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	require.NoError(t, err)
	query := parsed.Query()
	query.Set("timezone", zone)
	parsed.RawQuery = query.Encode()
	return parsed.String()
}

func TestTimesAreTheSameUnderAnySessionTimeZone(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	written := map[string]string{ // and what is read
		"2026-05-06T07:08:09.123456789+05:30":  "2026-05-06T01:38:09.123Z",
		"2026-05-06T07:08:09.9999-03:30":       "2026-05-06T10:38:09.999Z",
		"2026-03-08T02:30:00.500-05:00":        "2026-03-08T07:30:00.5Z", // not on a clock of New York
		"2026-11-01T01:30:00.001-04:00":        "2026-11-01T05:30:00.001Z",
		"2026-11-01T01:30:00.001-05:00":        "2026-11-01T06:30:00.001Z", // the same on its clock
		"0001-01-01T00:00:00.001Z":             "0001-01-01T00:00:00.001Z",
		"9999-12-31T23:59:59.999999999Z":       "9999-12-31T23:59:59.999Z",
		"1969-12-31T23:59:59.9995Z":            "1969-12-31T23:59:59.999Z",
		"1582-10-04T12:00:00.250+05:53":        "1582-10-04T06:07:00.25Z",
		"2026-05-06T07:08:09.000000001+14:00":  "2026-05-05T17:08:09Z",
		"2026-05-06T07:08:09.000999999-12:00":  "2026-05-06T19:08:09Z",
		"2026-05-06T07:08:09.4995Z":            "2026-05-06T07:08:09.499Z",
		"2026-05-06T07:08:09.4985000000+00:00": "2026-05-06T07:08:09.498Z",
	}
	memories := make(map[string]memory)
	for _, zone := range []string{"UTC", "Asia/Kolkata", "America/New_York"} {
		memories[zone] = memoryOn(dbtest.Open(t, inZone(t, address, zone)))
		var session string
		memories[zone].scan(t, `SHOW timezone`, nil, &session)
		require.Equal(t, zone, session)
	}
	for zone, m := range memories {
		for text := range written {
			at, err := time.Parse(time.RFC3339Nano, text)
			require.NoError(t, err)
			saved := m.save(t, message(recall.NewMessage{ID: zone + text, ThreadID: zone, CreatedAt: at}))
			require.Equal(t, written[text], saved[0].CreatedAt.Format(time.RFC3339Nano))
			require.Equal(t, time.UTC, saved[0].CreatedAt.Location())
		}
	}
	for reader, m := range memories {
		for writer := range memories {
			stored := m.stored(t, writer)
			require.Len(t, stored, len(written))
			for _, message := range stored {
				require.Equal(t, written[message.ID[len(writer):]], message.CreatedAt.Format(time.RFC3339Nano), "written under %s, read under %s", writer, reader)
				if reader != writer {
					m.requireFound(t, message)
				}
			}
			if reader == writer {
				m.requireWholeWalk(t, writer, ids(stored))
			}
		}
	}
}

// requireFound checks that the time of a message, as both bounds of a range,
// finds it.
func (m memory) requireFound(t must, message recall.Message) {
	t.Helper()
	for _, scope := range []recall.Request{{ThreadID: message.ThreadID}, {ResourceID: message.ResourceID}} {
		in := scope
		in.Filter.DateRange = recall.DateRange{Start: &message.CreatedAt, End: &message.CreatedAt}
		require.Contains(t, ids(m.recall(t, in).Messages), message.ID)
		in.Filter.DateRange.EndExclusive = true
		in.Filter.Roles = []string{message.Role}
		require.Empty(t, m.recall(t, in).Messages)
	}
}

// requireWholeWalk checks that a walk one by one, each way, meets the messages.
func (m memory) requireWholeWalk(t must, threadID string, wanted []string) {
	t.Helper()
	for _, direction := range []recall.Direction{recall.Ascending, recall.Descending} {
		var met []string
		for in := (recall.Request{ThreadID: threadID, PerPage: of(1), Direction: direction, Cursor: of("")}); ; {
			page := m.recall(t, in)
			met = append(met, ids(page.Messages)...)
			if !page.HasMore {
				break
			}
			in.Cursor = &page.NextCursor
		}
		if direction == recall.Descending {
			met = reversed(met)
		}
		require.Equal(t, wanted, met)
	}
}

func TestTimesOutsideOfTheCalendarAreRefused(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.create(t, recall.NewThread{ID: thread})
	outside := []time.Time{
		time.Date(0, 12, 31, 23, 59, 59, 999_000_000, time.UTC),
		time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600)),
		time.Date(1, 1, 1, 0, 0, 0, 0, time.FixedZone("", 3600)),
		time.Date(-300_000, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(300_000, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	for _, at := range outside {
		_, err := m.SaveMessages(ctx, []recall.NewMessage{message(recall.NewMessage{CreatedAt: at})}, true)
		requireCode(t, err, recall.CodeInvalid, "messages.0.createdAt")
		_, err = m.Recall(ctx, recall.Request{ThreadID: thread, Filter: recall.Filter{DateRange: recall.DateRange{Start: &at, End: &at}}})
		requireCode(t, err, recall.CodeInvalid, "filter.dateRange.start", "filter.dateRange.end")
		_, err = m.CloneThread(ctx, recall.ThreadClone{SourceID: thread, StartsAt: &at, EndsAt: &at})
		requireCode(t, err, recall.CodeInvalid, "options.messageFilter.startDate", "options.messageFilter.endDate")
	}
	require.Len(t, m.contents(t), 1)
}

// A save without a time gets the database's, not that of the client, whose
// clock is its own.
func TestMessageWithoutATimeIsOfNow(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	var before, after time.Time
	m.scan(t, `SELECT date_trunc('milliseconds', clock_timestamp())`, nil, &before)
	saved := m.save(t, message(recall.NewMessage{ID: "a"}))
	m.scan(t, `SELECT clock_timestamp()`, nil, &after)
	require.False(t, saved[0].CreatedAt.Before(before))
	require.False(t, saved[0].CreatedAt.After(after))
	require.Equal(t, saved[0].CreatedAt, m.stored(t, thread)[0].CreatedAt)
}
