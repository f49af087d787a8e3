package validation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/test/rig/validationtest"
)

func TestBroadcastJob(t *testing.T) {
	const valid = `{"metadata":{"namespace":"shop","name":"check"},"spec":{"template":{"spec":{"restartPolicy":"Never"}}}}`
	spec := func(text string) string { return `{"spec":{` + text + `}}` }
	name := func(name string) string { return `{"metadata":{"name":"` + name + `"}}` }
	for why, c := range map[string]struct {
		patch string
		want  []string
	}{
		"a job with a template alone":               {``, nil},
		"a restart policy that is left to defaults": {spec(`"template":{"spec":{"restartPolicy":null}}`), nil},
		"every field": {
			spec(`"parallelism":"50%","paused":true,"completionPolicy":{"type":"Always","activeDeadlineSeconds":0,"ttlSecondsAfterFinished":0},"failurePolicy":{"type":"Pause","restartLimit":3},"template":{"spec":{"restartPolicy":"OnFailure"}}`),
			nil,
		},
		"pods that are restarted for ever": {
			spec(`"template":{"spec":{"restartPolicy":"Always"}}`),
			[]string{"spec.template.spec.restartPolicy: Unsupported value"},
		},
		"a label that the controller sets": {
			spec(`"template":{"metadata":{"labels":{"broadcastjob-name":"x"}}}`),
			[]string{"spec.template.metadata.labels: Forbidden"},
		},
		"both labels that the controller sets": {
			spec(`"template":{"metadata":{"labels":{"broadcastjob-name":"x","broadcastjob-controller-uid":"y"}}}`),
			[]string{"spec.template.metadata.labels: Forbidden", "spec.template.metadata.labels: Forbidden"},
		},
		"an empty label is none": {
			spec(`"template":{"metadata":{"labels":{"broadcastjob-name":""}}}`), nil,
		},
		"limits of a job that never completes": {
			spec(`"completionPolicy":{"type":"Never","activeDeadlineSeconds":1,"ttlSecondsAfterFinished":1}`),
			[]string{
				"spec.completionPolicy.ttlSecondsAfterFinished: Invalid value",
				"spec.completionPolicy.activeDeadlineSeconds: Invalid value",
			},
		},
		"limits below zero": {
			spec(`"completionPolicy":{"activeDeadlineSeconds":-1,"ttlSecondsAfterFinished":-1}`),
			[]string{
				"spec.completionPolicy.ttlSecondsAfterFinished: Invalid value",
				"spec.completionPolicy.activeDeadlineSeconds: Invalid value",
			},
		},
		"policies that do not exist": {
			spec(`"completionPolicy":{"type":"Sometimes"},"failurePolicy":{"type":"Retry"}`),
			[]string{"spec.completionPolicy.type: Unsupported value", "spec.failurePolicy.type: Unsupported value"},
		},
		"a restart limit below zero": {
			spec(`"failurePolicy":{"restartLimit":-1}`), []string{"spec.failurePolicy.restartLimit: Invalid value"},
		},
		"a parallelism below zero": {
			spec(`"parallelism":-1`), []string{"spec.parallelism: Invalid value"},
		},
		"a percentage below zero": {
			spec(`"parallelism":"-1%"`), []string{"spec.parallelism: Invalid value"},
		},
		"a parallelism that is no number": {
			spec(`"parallelism":"many"`), []string{"spec.parallelism: Invalid value"},
		},
		"a name with a dot":       {name("a.b"), []string{"metadata.name: Invalid value"}},
		"a name of 63 characters": {name(strings.Repeat("a", 63)), nil},
		"a name of 64 characters, which no label has": {
			name(strings.Repeat("a", 64)), []string{"metadata.name: Invalid value"},
		},
		"a job without a namespace": {
			`{"metadata":{"namespace":""}}`, []string{"metadata.namespace: Required value"},
		},
		"a name that will be generated is for later": {`{"metadata":{"generateName":"check-"}}`, nil},
	} {
		t.Run(why, func(t *testing.T) {
			job := &appsv1beta1.BroadcastJob{}
			validationtest.Patched(t, valid, c.patch, job)
			if diff := cmp.Diff(c.want, validationtest.Places(validation.BroadcastJob(job))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
