package embedtest

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Failure is a way in which a [Stub] answers a request wrongly.
type Failure struct {
	// respond answers a request for texts texts.
	respond func(w http.ResponseWriter, dimensions, texts int)
	hangs   bool // it does not answer at all
}

// Status answers with an error of this HTTP status.
func Status(status int) Failure {
	return Failure{respond: func(w http.ResponseWriter, _, _ int) { writeError(w, status) }}
}

// TooManyRequests answers 429 with Retry-After, in whole seconds.
func TooManyRequests(retryAfter time.Duration) Failure {
	return Failure{respond: func(w http.ResponseWriter, _, _ int) {
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
		writeError(w, http.StatusTooManyRequests)
	}}
}

// The other failures.
var (
	// Hangup closes the connection without an answer.
	Hangup = Failure{respond: func(http.ResponseWriter, int, int) { panic(http.ErrAbortHandler) }}
	// Hang keeps the request waiting until its caller is gone.
	Hang = Failure{hangs: true}
	// Garbage answers 200 with a page of HTML.
	Garbage = Body("<html>Welcome</html>")
	// CutShort answers 200 with half an object.
	CutShort = Body(`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1,`)
	// WrongDimensions answers with vectors that are one too long.
	WrongDimensions = vectors(func(d int) []any { return constant(d+1, .5) })
	// MixedDimensions answers with the last vector one too long.
	MixedDimensions = items(func(dimensions, texts int) []item {
		all := good(dimensions, texts)
		all[texts-1].Embedding = constant(dimensions+1, .5)
		return all
	})
	// FewerVectors answers with one vector too few.
	FewerVectors = items(func(dimensions, texts int) []item { return good(dimensions, texts)[:texts-1] })
	// MoreVectors answers with one vector too many.
	MoreVectors = items(func(dimensions, texts int) []item { return good(dimensions, texts+1) })
	// SameIndex gives every vector the index 0; with one text that is right.
	SameIndex = items(func(dimensions, texts int) []item { return indexed(dimensions, texts, func(int) any { return 0 }) })
	// ShiftedIndex counts from 1.
	ShiftedIndex = items(func(dimensions, texts int) []item {
		return indexed(dimensions, texts, func(i int) any { return i + 1 })
	})
	// NoIndex leaves the index out.
	NoIndex = items(func(dimensions, texts int) []item { return indexed(dimensions, texts, func(int) any { return nil }) })
	// Zero answers with vectors of zeros.
	Zero = vectors(func(d int) []any { return constant(d, 0.0) })
	// NotANumber has NaN among the values, which is not JSON.
	NotANumber = oneValue("NaN")
	// Null has null among the values, as services write NaN that know JSON.
	Null = oneValue("null")
	// Infinite has a number among the values that no float64 can hold.
	Infinite = oneValue("1e999")
	// Text has a string among the values.
	Text = oneValue(`"0.5"`)
	// Empty answers with vectors without values.
	Empty = vectors(func(int) []any { return []any{} })
)

// Body answers 200 with this body as JSON, whatever it is.
func Body(body string) Failure {
	return Failure{respond: func(w http.ResponseWriter, _, _ int) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, body)
	}}
}

func items(build func(dimensions, texts int) []item) Failure {
	return Failure{respond: func(w http.ResponseWriter, dimensions, texts int) { writeItems(w, build(dimensions, texts)) }}
}

func vectors(build func(dimensions int) []any) Failure {
	return items(func(dimensions, texts int) []item {
		all := good(dimensions, texts)
		for i := range all {
			all[i].Embedding = build(dimensions)
		}
		return all
	})
}

// oneValue has value, as it stands, as the last of every vector's.
func oneValue(value string) Failure {
	return vectors(func(dimensions int) []any {
		values := constant(dimensions, .5)
		values[dimensions-1] = raw(value)
		return values
	})
}

func good(dimensions, texts int) []item {
	return indexed(dimensions, texts, func(i int) any { return i })
}

func indexed(dimensions, texts int, index func(int) any) []item {
	all := make([]item, texts)
	for i := range all {
		all[i] = item{Index: index(i), Embedding: constant(dimensions, 1/math.Sqrt(float64(dimensions)))}
	}
	return all
}

func constant(length int, value float64) []any {
	values := make([]any, length)
	for i := range values {
		values[i] = value
	}
	return values
}
