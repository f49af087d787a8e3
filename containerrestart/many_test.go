package containerrestart_test

import (
	"fmt"
	"testing"

	"github.com/kruisekit/kruisekit/containerrestart"
)

// What a decision about one request costs in memory does not grow with the requests that wait for the same pod: a pass
// looks at all.
func TestManyRequestsOfOnePod(t *testing.T) {
	pod := newPod()
	costs := func(n int) (step, supervise float64) {
		var others []*request
		for i := range n {
			others = append(others, admitted(in(pending), named(fmt.Sprintf("r%04d", i), -float64(n-i))))
		}
		last := others[n-1]
		step = testing.AllocsPerRun(20, func() {
			containerrestart.Next(containerrestart.Work{Request: last, Others: others, Pod: pod, Now: at(1)})
		})
		supervise = testing.AllocsPerRun(20, func() {
			containerrestart.Supervise(containerrestart.Input{Request: last, Others: others, Pod: pod, Now: at(1)})
		})
		return step, supervise
	}
	fewStep, fewSupervise := costs(10)
	manyStep, manySupervise := costs(1000)
	if manyStep > fewStep+1 || manySupervise > fewSupervise+4 { // which completes the request, for there are too many
		t.Errorf("allocations with 10 requests %g and %g, with 1,000 %g and %g",
			fewStep, fewSupervise, manyStep, manySupervise)
	}
}
