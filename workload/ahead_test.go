package workload_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// TestAhead: what comes ahead of an update is made, and observed, before the pod changes. Only updates that change a
// pod are asked for.
func TestAhead(t *testing.T) {
	label := func(pod *corev1.Pod) write.Write {
		return *write.JSON(pod, write.Main, write.Test("/metadata/uid", pod.UID),
			write.Add("/metadata/annotations", map[string]string{"ahead": "made"}))
	}
	for name, c := range map[string]struct {
		ahead  func(*corev1.Pod) workload.Ahead
		sent   []string
		noted  []string
		failed string
	}{
		"nothing: the pods change": {
			ahead: func(*corev1.Pod) workload.Ahead { return workload.Ahead{} },
			sent:  []string{"Ask a", "Unready a", "Unready b", "Update a", "Update b"},
		},
		"writes: the pods wait until the writes are observed": {
			ahead: func(pod *corev1.Pod) workload.Ahead { return workload.Ahead{Writes: []write.Write{label(pod)}} },
			sent:  []string{"Ahead a", "Ahead b"},
		},
		"waits: the pods wait, with a note": {
			ahead: func(*corev1.Pod) workload.Ahead { return workload.Ahead{Wait: "it grows"} },
			noted: []string{"a", "b"},
		},
		"one waits: the other one goes on": {func(pod *corev1.Pod) workload.Ahead {
			if pod.Name == "a" {
				return workload.Ahead{Wait: "it grows"}
			}
			return workload.Ahead{}
		}, []string{"Ask b", "Unready b", "Update b"}, []string{"a"}, ""},
		"impossible: another one takes its turn": {
			ahead: func(pod *corev1.Pod) workload.Ahead {
				if pod.Name == "a" {
					return workload.Ahead{Err: errors.New("its class does not grow")}
				}
				return workload.Ahead{}
			},
			sent:   []string{"Ask b", "Unready b", "Update b", "Ask c", "Unready c", "Update c"},
			failed: "pod a: its class does not grow",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := three(t)
			in := s.input()
			in.Ask, in.Ahead, in.Scale.Limits.MaxUnavailable = true, c.ahead, 2
			for i := range in.Instances {
				in.Scale.Slots = append(in.Scale.Slots, in.Instances[len(in.Instances)-1-i].Name)
			}
			pass := s.run(in)
			sent := slices.Clone(s.sent)
			if diff := cmp.Diff(c.sent, sent); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var noted []string
			for _, n := range pass.Notes() {
				if n.Code == workload.NoteAhead {
					noted = append(noted, n.Object)
				}
			}
			if diff := cmp.Diff(c.noted, noted); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			failures := pass.Failures()
			if (c.failed != "") != (len(failures) == 1) ||
				len(failures) == 1 && (!failures[0].Ahead || !strings.Contains(failures[0].Err.Error(), c.failed)) {
				t.Errorf("failures %v", failures)
			}
		})
	}
}
