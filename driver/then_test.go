package driver_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/write"
)

func TestThen(t *testing.T) {
	errReset := errors.New("reset")
	for name, c := range map[string]struct {
		why      string
		answers  map[string]error
		planned  error
		answered func(write.Object, error) error
		sent     []string
		err      string
	}{
		"no error": {why: "one follows the other, and a step without a write is none", sent: []string{"a", "c"}},
		"an error": {
			why:     "the rest waits for the next pass",
			answers: map[string]error{"a": errReset},
			sent:    []string{"a"},
			err:     "write a: reset",
		},
		"an error of use": {
			why:      "the step decides",
			answers:  map[string]error{"a": errReset},
			answered: func(write.Object, error) error { return nil },
			sent:     []string{"a", "c"},
		},
		"an answer that is none": {
			why:      "the step decides",
			answered: func(write.Object, error) error { return errReset },
			sent:     []string{"a"},
			err:      "write a: reset",
		},
		"a write that cannot be made": {
			why: "nothing is sent for it, nor after it", planned: errReset, sent: []string{"a"}, err: "write b: reset",
		},
	} {
		t.Run(name, func(t *testing.T) {
			step := func(name string, answered func(write.Object, error) error) driver.Step[*write.Write] {
				return driver.Then("write "+name, func() (*write.Write, error) {
					if name == "b" {
						return nil, c.planned
					}
					return &write.Write{Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}}, nil
				}, answered)
			}
			pass := driver.Sequence(step("a", c.answered), step("b", nil), step("c", nil))
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
