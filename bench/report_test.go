package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAPercentileIsTheLeastSampleThatSoManyDoNotExceed(t *testing.T) {
	t.Parallel()
	var samples []time.Duration
	for i := 100; i >= 1; i-- {
		samples = append(samples, time.Duration(i)*time.Millisecond)
	}
	times := summarise(samples)
	assert.Equal(t, Times{Calls: 100, P50: 50, P95: 95, P99: 99, PerSecond: 100 / 5.05}, times)
	one := summarise(samples[:1])
	assert.Equal(t, Times{Calls: 1, P50: 100, P95: 100, P99: 100, PerSecond: 10}, one)
}

func TestARatioIsJudgedByTargetAndByCheck(t *testing.T) {
	t.Parallel()
	samples := pair{http: []time.Duration{4 * time.Millisecond}, sql: []time.Duration{time.Millisecond}}
	for name, c := range map[string]struct {
		targets     targets
		met, passed bool
		information *Information
	}{
		"without targets": {targets{}, true, true, nil},
		"both kept":       {targets{ratio: 4, checkRatio: 4}, true, true, nil},
		"target missed":   {targets{ratio: 3, checkRatio: 8}, false, true, nil},
		"check missed":    {targets{ratio: 3, checkRatio: 3.9}, false, false, nil},
		"a time that is not met": {targets{time: time.Millisecond}, true, true,
			&Information{Unit: "ms", Target: 1, Measured: 4}},
		"a rate that is met": {targets{messages: 20, messagesPerSecond: 5000}, true, true,
			&Information{Unit: "messages/s", Target: 5000, Measured: 5000, Met: true}},
	} {
		result := operation{targets: c.targets}.result(samples)
		assert.Equal(t, c.met, result.Met(), name)
		assert.Equal(t, c.passed, result.Check() == nil, name)
		assert.Equal(t, c.information, result.Information, name)
	}
}

func TestGrowthIsMeasuredByThePageOfASmallThread(t *testing.T) {
	t.Parallel()
	sample := func(http int) pair {
		return pair{http: []time.Duration{time.Duration(http) * time.Millisecond}, sql: []time.Duration{time.Millisecond}}
	}
	all := results(
		[]operation{{name: "empty"}, {name: "small", small: true}, {name: "large", targets: targets{checkGrowth: 3}}},
		[]pair{sample(1), sample(2), sample(8)},
	)
	assert.Equal(t, []float64{0.5, 1, 4}, []float64{all[0].Growth, all[1].Growth, all[2].Growth})
	require.NoError(t, all[1].Check())
	assert.ErrorContains(t, all[2].Check(), "large")
}

func TestASearchByMeaningIsCheckedForWhatItFinds(t *testing.T) {
	t.Parallel()
	samples := pair{http: []time.Duration{time.Millisecond}, sql: []time.Duration{time.Millisecond}}
	searched := operation{name: "semantic", targets: targets{checkRecall: .97}, recall: .97}
	require.NoError(t, searched.result(samples).Check())
	searched.recall = .968
	assert.EqualError(t, searched.result(samples).Check(), "semantic finds 0.968 of the nearest messages, less than 0.97")
}
