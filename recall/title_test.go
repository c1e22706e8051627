package recall_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/chat/chattest"
	chat "github.com/pgrecall/pgrecall/recall/chat/remote"
	"github.com/pgrecall/pgrecall/recall/jobs"
)

// titled is a memory whose agents get titles from a stub.
type titled struct {
	memory
	url  string
	stub *chattest.Stub
}

const (
	// agent wants titles, mute does not.
	agent     = "agent"
	mute      = "mute"
	secretKey = "SECRET-KEY"
	// told is what a user says first, and what nothing may repeat.
	told = "SECRET-TEXT of a trip to Kyoto"
)

func newTitled(t testing.TB) titled {
	t.Helper()
	m := titledOn(t, dbtest.URL(t), "Trip to Kyoto")
	m.configure(t, agent, `{"generateTitle":true}`)
	m.configure(t, mute, `{"generateTitle":false}`)
	return m
}

// titledOn gives a memory on a database, where all titles are the same.
func titledOn(t testing.TB, url, title string) titled {
	t.Helper()
	stub := chattest.NewStub(t, title)
	stub.RequireKey(secretKey)
	client, err := chat.NewOpenAI(chat.Config{BaseURL: stub.URL(), Key: secretKey, Model: "small"})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	pool := dbtest.Open(t, url)
	return titled{memory{recall.New(pool, recall.DefaultLimits(), recall.WithChat(client)), pool}, url, stub}
}

func (m titled) configure(t must, agent, config string) {
	t.Helper()
	require.NoError(t, m.SaveAgent(ctx, agent, json.RawMessage(config)))
}

// work works on the jobs until the test ends, and gives what is logged.
func (m titled) work(t testing.TB, tries int) *logs {
	t.Helper()
	log := &logs{}
	workers, err := jobs.Start(ctx, jobs.Config{
		Pool: dbtest.Open(t, m.url), Logger: slog.New(slog.NewJSONHandler(log, nil)), Title: m.GenerateTitle, TitleTries: tries,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, workers.Stop(ctx)) })
	return log
}

// logs keeps what is logged.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// say saves messages for an agent.
func (m titled) say(t must, agent string, messages ...recall.NewMessage) {
	t.Helper()
	_, err := m.SaveMessages(ctx, messages, true, recall.ForAgent(agent))
	require.NoError(t, err)
}

// replied is what the assistant says.
func replied(id, words string) recall.NewMessage {
	return message(recall.NewMessage{ID: id, Role: "assistant", Content: text(words)})
}

// titleOf gives a thread's title and who it is from.
func (m titled) titleOf(t must, id string) (title, source string) {
	t.Helper()
	m.scan(t, `SELECT title, title_source FROM recall.threads WHERE id = $1`, []any{id}, &title, &source)
	return title, source
}

func (m titled) requireTitle(t must, title, source string) {
	t.Helper()
	gotTitle, gotSource := m.titleOf(t, thread)
	require.Equal(t, []string{title, source}, []string{gotTitle, gotSource})
}

// jobIDs gives all jobs for titles, done or not.
func (m titled) jobIDs(t must) []int {
	t.Helper()
	return column[int](t, m.memory, `SELECT id FROM recall.river_job WHERE kind = 'title' ORDER BY id`)
}

// settled waits until no job waits.
func (m titled) settled(t must) recall.Backlog { return remotely{memory: m.memory}.settled(t) }

func TestAThreadGetsATitleFromItsFirstTurn(t *testing.T) {
	t.Parallel()
	m := newTitled(t)
	m.say(t, agent, message(recall.NewMessage{ID: "s", Role: "system", Content: text("Be brief")}), said("u", told), replied("a", "In April?"))
	before := m.create(t, recall.NewThread{ID: thread})
	m.requireTitle(t, "", "none")
	m.work(t, 1)
	assert.Zero(t, m.settled(t).Dead)
	m.requireTitle(t, "Trip to Kyoto", "generated")
	after, err := m.Thread(ctx, thread, "")
	require.NoError(t, err)
	assert.Equal(t, before.UpdatedAt, after.UpdatedAt, "nobody has said anything")
	require.Len(t, m.stub.Requests(), 1)
	request := m.stub.Requests()[0]
	assert.Equal(t, "small", request.Model)
	assert.Equal(t, "User: "+told+"\n\nAssistant: In April?", request.User)
	assert.Contains(t, request.System, "80 characters")
}

func TestTitlesAreMadeOnlyWhereTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	m := newTitled(t)
	for name, messages := range map[string][]recall.NewMessage{
		mute: {said("m", told)}, "absent": {said("n", told)}, "": {said("o", told)}, strings.Repeat("x", 1000): {said("p", told)},
		agent: {replied("a", "Can I help?"), message(recall.NewMessage{ID: "i", Content: withMetadata(`{}`)}), said("b", "\u00a0 ")},
	} {
		m.say(t, name, messages...)
	}
	m.save(t, said("q", told))
	without := memoryOn(m.pool)
	_, err := without.SaveMessages(ctx, []recall.NewMessage{said("r", told)}, true, recall.ForAgent(agent))
	require.NoError(t, err)
	assert.Empty(t, m.jobIDs(t))
}

func TestFurtherSavesBringNoJob(t *testing.T) {
	t.Parallel()
	m := newTitled(t)
	for i := range 3 {
		m.say(t, agent, said(fmt.Sprint("m", i), told))
	}
	m.say(t, agent, said("m0", told))
	require.Len(t, m.jobIDs(t), 1, "one waits")
	m.work(t, 1)
	m.settled(t)
	m.say(t, agent, said("n", told), replied("o", "And then?"))
	assert.Len(t, m.jobIDs(t), 1, "it has a title")
	assert.Len(t, m.stub.Requests(), 1)
}

func TestSavesAtOnceBringOneJob(t *testing.T) {
	t.Parallel()
	m := newTitled(t)
	for _, err := range together(10, func(i int) error {
		_, err := m.SaveMessages(ctx, []recall.NewMessage{said(fmt.Sprint("m", i), told)}, true, recall.ForAgent(agent))
		return err
	}) {
		require.NoError(t, err)
	}
	assert.Len(t, m.jobIDs(t), 1)
}

func TestASaveAndItsTitlesCommitTogether(t *testing.T) {
	t.Parallel()
	m := newTitled(t)
	m.say(t, mute, message(recall.NewMessage{ID: "taken", ThreadID: "other"}))
	_, err := m.SaveMessages(ctx, []recall.NewMessage{said("m", told), said("taken", told)}, true, recall.ForAgent(agent))
	requireCode(t, err, recall.CodeConflict, "messages.1.id")
	assert.Empty(t, m.jobIDs(t))
}

func TestASaveOfManyThreadsGivesEachATitle(t *testing.T) {
	t.Parallel()
	m := newTitled(t)
	const many = 100
	var all []recall.NewMessage
	for i := range many {
		all = append(all, message(recall.NewMessage{ThreadID: fmt.Sprint("thread", i), Content: text(told)}))
	}
	m.create(t, recall.NewThread{ID: "thread7", Title: of("Mine")})
	m.say(t, agent, all...)
	m.work(t, 1)
	assert.Zero(t, m.settled(t).Dead)
	assert.Equal(t, many-1, column[int](t, m.memory, `SELECT count(*) FROM recall.threads WHERE title_source = 'generated'`)[0])
	title, source := m.titleOf(t, "thread7")
	assert.Equal(t, []string{"Mine", "user"}, []string{title, source})
	assert.Len(t, m.stub.Requests(), many-1)
}

// What the user does to the title, ahead of the job or while it is under way.
func TestTheUsersTitleStays(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]struct {
		do    func(m titled) error
		title string
	}{
		"renamed": {func(m titled) error {
			_, err := m.UpdateThread(ctx, recall.ThreadUpdate{ID: thread, Title: of("Mine")})
			return err
		}, "Mine"},
		"set to none": {func(m titled) error {
			_, err := m.UpdateThread(ctx, recall.ThreadUpdate{ID: thread, Title: of("")})
			return err
		}, ""},
		"created with one": {func(m titled) error {
			_, err := m.CreateThread(ctx, recall.NewThread{ID: thread, ResourceID: resource, Title: of("Mine")})
			return err
		}, "Mine"},
	} {
		t.Run(name+" before", func(t *testing.T) {
			t.Parallel()
			m := newTitled(t)
			m.create(t, recall.NewThread{ID: thread})
			require.NoError(t, set.do(m))
			m.say(t, agent, said("m", told))
			assert.Empty(t, m.jobIDs(t))
			m.requireTitle(t, set.title, "user")
		})
		t.Run(name+" while it waits", func(t *testing.T) {
			t.Parallel()
			m := newTitled(t)
			m.say(t, agent, said("m", told))
			require.NoError(t, set.do(m))
			m.work(t, 1)
			assert.Zero(t, m.settled(t).Dead)
			m.requireTitle(t, set.title, "user")
			assert.Empty(t, m.stub.Requests(), "what is not needed is not paid for")
		})
		t.Run(name+" while it is made", func(t *testing.T) {
			t.Parallel()
			m := newTitled(t)
			hold := m.stub.Hold()
			m.work(t, 1)
			m.say(t, agent, said("m", told))
			<-hold.Arrived()
			require.NoError(t, set.do(m))
			m.stub.Release()
			assert.Zero(t, m.settled(t).Dead)
			m.requireTitle(t, set.title, "user")
			assert.Len(t, m.stub.Requests(), 1)
		})
	}
}

func TestOfTwoGeneratorsOneIsStored(t *testing.T) {
	t.Parallel()
	m := newTitled(t)
	other := titledOn(t, m.url, "Another title")
	m.say(t, agent, said("m", told))
	hold := m.stub.Hold()
	done := make(chan error)
	go func() { done <- m.GenerateTitle(ctx, thread, agent) }()
	<-hold.Arrived()
	assert.Zero(t, m.pool.Stat().AcquiredConns(), "no connection is held")
	require.NoError(t, other.GenerateTitle(ctx, thread, agent))
	m.stub.Release()
	require.NoError(t, <-done)
	m.requireTitle(t, "Another title", "generated")
	assert.Len(t, m.stub.Requests(), 1)
}

func TestAThreadThatIsDeletedMeanwhileGetsNothing(t *testing.T) {
	t.Parallel()
	m := newTitled(t)
	hold := m.stub.Hold()
	m.work(t, 1)
	m.say(t, agent, said("m", told))
	<-hold.Arrived()
	require.NoError(t, m.DeleteThread(ctx, thread, ""))
	m.stub.Release()
	assert.Zero(t, m.settled(t).Dead)
	assert.Len(t, m.stub.Requests(), 1, "no loop")
}

// The id is given anew, to another user, who must not see what the first one said.
func TestAThreadThatTakesADeletedOnesPlaceGetsATitleOfItsOwn(t *testing.T) {
	t.Parallel()
	m := newTitled(t)
	hold := m.stub.Hold()
	m.work(t, 1)
	m.say(t, agent, said("m", told))
	<-hold.Arrived()
	require.NoError(t, m.DeleteThread(ctx, thread, ""))
	m.say(t, mute, message(recall.NewMessage{ResourceID: "ben", Content: text("Camels")}))
	m.stub.Release()
	assert.Zero(t, m.settled(t).Dead)
	require.Len(t, m.stub.Requests(), 2)
	assert.Equal(t, "User: Camels", m.stub.Requests()[1].User)
}

func TestATitleIsNotMadeOfWhatIsDeletedOrEditedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(m titled) error{
		"deleted": func(m titled) error {
			_, err := m.DeleteMessages(ctx, []string{"m"}, "")
			return err
		},
		"edited": func(m titled) error {
			_, err := m.UpdateMessages(ctx, []recall.MessageUpdate{{ID: "m", Content: text("Camels")}}, "")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newTitled(t)
			hold := m.stub.Hold()
			m.work(t, 1)
			m.say(t, agent, said("m", told))
			<-hold.Arrived()
			require.NoError(t, change(m))
			m.say(t, mute, said("n", "Camels"))
			m.stub.Release()
			assert.Zero(t, m.settled(t).Dead)
			require.Len(t, m.stub.Requests(), 2)
			assert.Equal(t, "User: Camels", m.stub.Requests()[1].User)
			m.requireTitle(t, "Trip to Kyoto", "generated")
		})
	}
}

func TestATitleComesLaterWhereTheServiceIsOutOfReach(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]chattest.Failure{
		"down": chattest.Status(503), "hanging up": chattest.Hangup, "with another key": chattest.Status(401),
		"without the model": chattest.Status(404), "too busy": chattest.TooManyRequests(time.Second), "another's": chattest.Garbage,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newTitled(t)
			m.stub.Fail(failure)
			log := m.work(t, 1)
			m.say(t, agent, said("m", told))
			eventually(t, func() bool { return len(m.stub.Requests()) >= 2 })
			waiting, err := m.Jobs(ctx, recall.JobListing{})
			require.NoError(t, err)
			require.Len(t, waiting, 1)
			assert.Equal(t, []any{recall.JobTitle, thread, resource}, []any{waiting[0].Kind, waiting[0].ThreadID, waiting[0].ResourceID})
			assert.Empty(t, waiting[0].MessageIDs)
			m.stub.Heal()
			assert.Zero(t, m.settled(t).Dead)
			m.requireTitle(t, "Trip to Kyoto", "generated")
			assert.Equal(t, 1, strings.Count(log.String(), "a title waits"), log)
			m.requireNoSecrets(t, log)
		})
	}
}

// requireNoSecrets looks for the key and the text in jobs and logs.
func (m titled) requireNoSecrets(t must, log *logs) {
	t.Helper()
	rows := column[string](t, m.memory, `SELECT row_to_json(j)::text FROM recall.river_job AS j WHERE kind = 'title'`)
	require.NotEmpty(t, rows)
	require.NotContains(t, strings.Join(rows, "\n")+log.String(), "SECRET")
}

func TestATitleThatIsRefusedEndsDeadAndCanBeRetried(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]chattest.Failure{
		"bad request": chattest.Status(400), "filtered": chattest.Filtered, "refusal": chattest.Refusal, "empty": chattest.Empty,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newTitled(t)
			m.stub.Fail(failure)
			log := m.work(t, 2)
			m.say(t, agent, said("m", told))
			assert.Equal(t, int64(1), m.settled(t).Dead)
			assert.Len(t, m.stub.Requests(), 2)
			m.requireTitle(t, "", "none")
			dead, err := m.Jobs(ctx, recall.JobListing{Dead: true})
			require.NoError(t, err)
			require.Len(t, dead, 1)
			assert.Equal(t, thread, dead[0].ThreadID)
			assert.Contains(t, dead[0].LastError, "the title cannot be made: ")
			m.requireNoSecrets(t, log)

			m.say(t, agent, said("n", told))
			assert.Len(t, m.jobIDs(t), 1, "it is not asked again and again")
			m.stub.Heal()
			n, err := m.RetryJobs(ctx, nil)
			require.NoError(t, err)
			assert.Equal(t, int64(1), n)
			assert.Zero(t, m.settled(t).Dead)
			m.requireTitle(t, "Trip to Kyoto", "generated")
		})
	}
}

func TestAnAnswerWithoutATitleIsRefused(t *testing.T) {
	t.Parallel()
	m := newTitled(t)
	m.stub.Answer("<think>SECRET-TEXT of a trip, so</think>\n\"\"")
	m.say(t, agent, said("m", told))
	err := m.GenerateTitle(ctx, thread, agent)
	var refused *jobs.Refused
	require.ErrorAs(t, err, &refused)
	assert.NotContains(t, err.Error(), "SECRET")
	m.requireTitle(t, "", "none")
}

func TestAnAgentsModelAndInstructionsAreSent(t *testing.T) {
	t.Parallel()
	m := newTitled(t)
	m.configure(t, "own", `{"threads":{"generateTitle":{"model":"large","instructions":"Make it rhyme."}}}`)
	m.say(t, "own", said("m", told))
	m.work(t, 1)
	m.settled(t)
	assert.Equal(t, []chattest.Request{{Model: "large", System: "Make it rhyme.", User: "User: " + told}}, m.stub.Requests())
}

// The configuration that holds is that of the time of the work.
func TestAModelThatIsNotThereIsCorrectedAndRetried(t *testing.T) {
	t.Parallel()
	m := newTitled(t)
	m.stub.HasModels("small", "large")
	m.configure(t, "own", `{"generateTitle":{"model":"lrge"}}`)
	m.say(t, "own", said("m", told))
	m.work(t, 1)
	assert.Equal(t, int64(1), m.settled(t).Dead, "it is nothing about the service")
	m.configure(t, "own", `{"generateTitle":{"model":"large"}}`)
	_, err := m.RetryJobs(ctx, nil)
	require.NoError(t, err)
	assert.Zero(t, m.settled(t).Dead)
	m.requireTitle(t, "Trip to Kyoto", "generated")
}

func TestAnAgentThatWantsNoTitlesAnyMoreGetsNone(t *testing.T) {
	t.Parallel()
	m := newTitled(t)
	m.say(t, agent, said("m", told))
	m.configure(t, agent, `{"generateTitle":false}`)
	m.work(t, 1)
	assert.Zero(t, m.settled(t).Dead)
	m.requireTitle(t, "", "none")
	assert.Empty(t, m.stub.Requests())
	m.configure(t, agent, `{"generateTitle":true}`)
	m.say(t, agent, said("n", "Camels"))
	m.settled(t)
	m.requireTitle(t, "Trip to Kyoto", "generated")
}

func TestALongMessageIsCutForTheModel(t *testing.T) {
	t.Parallel()
	m := newTitled(t)
	m.say(t, agent, said("m", strings.Repeat("京", 100_000)), replied("a", strings.Repeat("都", 100_000)))
	require.NoError(t, m.GenerateTitle(ctx, thread, agent))
	assert.Less(t, len(m.stub.Requests()[0].User), 20_000)
	m.requireTitle(t, "Trip to Kyoto", "generated")
}
