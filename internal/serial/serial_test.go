package serial_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/internal/serial"
	"github.com/kruisekit/kruisekit/write"
)

func TestPass(t *testing.T) {
	failed := errors.New("reset")
	for name, c := range map[string]struct {
		why      string
		answers  map[string]error
		answered func(write.Object, error) error
		sent     []string
		err      string
	}{
		"no error": {why: "one follows the other, and a step without a write is none", sent: []string{"a", "c"}},
		"an error": {
			why:     "the rest waits for the next pass",
			answers: map[string]error{"a": failed},
			sent:    []string{"a"},
			err:     "write a: reset",
		},
		"an error of use": {
			why:      "the step decides",
			answers:  map[string]error{"a": failed},
			answered: func(write.Object, error) error { return nil },
			sent:     []string{"a", "c"},
		},
		"nothing left to do": {
			why: "that is no failure", answered: func(write.Object, error) error { return serial.ErrStop }, sent: []string{"a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			step := func(name string) serial.Step {
				return serial.Step{Doing: "write " + name, Plan: func() (*write.Write, error) {
					if name == "b" {
						return nil, nil
					}
					return &write.Write{Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}}, nil
				}}
			}
			first := step("a")
			first.Answered = c.answered
			pass := serial.Pass(first, step("b"), step("c"))
			var sent []string
			for writes := pass.Next(); len(writes) > 0; writes = pass.Next() {
				name := writes[0].Object.GetName()
				sent = append(sent, name)
				pass.Answer(time.Time{}, writes[0], nil, c.answers[name])
			}
			text := ""
			if err := pass.Err(); err != nil {
				text = err.Error()
			}
			if !slices.Equal(sent, c.sent) || text != c.err {
				t.Errorf("%s: sent %q, %q", c.why, sent, text)
			}
		})
	}
}
