package disruption

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/pub"
)

// spending is the merge patch of the records that a state lacks. It tests the resource version of the state.
func spending(from known, after pub.Budget) ([]byte, error) {
	before := from.budget
	type status struct {
		UnavailableAllowed int32             `json:"unavailableAllowed"`
		DisruptedPods      map[string]string `json:"disruptedPods,omitempty"`
		UnavailablePods    map[string]string `json:"unavailablePods,omitempty"`
	}
	patch := struct {
		Metadata map[string]string `json:"metadata"`
		Status   status            `json:"status"`
	}{
		map[string]string{"uid": string(before.UID), "resourceVersion": from.version},
		status{
			after.Status.UnavailableAllowed, added(before.Status.DisruptedPods, after.Status.DisruptedPods),
			added(before.Status.UnavailablePods, after.Status.UnavailablePods),
		},
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode records: %w", err)
	}
	return data, nil
}

// added returns the records that a map has and another one lacks, or has with another time.
func added(before, after map[string]metav1.Time) map[string]string {
	more := map[string]string{}
	for pod, at := range after {
		if was, had := before[pod]; !had || !was.Equal(&at) {
			more[pod] = at.UTC().Format(time.RFC3339)
		}
	}
	return more
}
