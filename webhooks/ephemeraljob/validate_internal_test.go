package ephemeraljob

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/test/rig/validationtest"
)

const validEphemeralJob = `{"spec":{"selector":{"matchLabels":{"app":"web"}},"template":{"ephemeralContainers":[{"name":"shell","image":"busybox:1"}]}}}`

func TestEphemeralJob(t *testing.T) {
	const first = "spec.template.ephemeralContainers[0]"
	spec := func(text string) string { return `{"spec":{` + text + `}}` }
	containers := func(text string) string { return spec(`"template":{"ephemeralContainers":[` + text + `]}`) }
	with := func(text string) string { return containers(`{"name":"shell","image":"busybox:1",` + text + `}`) }
	forbidden := func(names ...string) (all []string) {
		for _, name := range names {
			all = append(all, first+"."+name+": Forbidden")
		}
		return all
	}
	for why, c := range map[string]struct {
		patch string
		want  []string
	}{
		"the least": {``, nil},
		"everything": {
			spec(`"replicas":1,"parallelism":1,"paused":true,"activeDeadlineSeconds":1,"ttlSecondsAfterFinished":1`), nil,
		},
		"numbers that hold a job": {
			spec(`"replicas":0,"parallelism":0,"activeDeadlineSeconds":0,"ttlSecondsAfterFinished":0`), nil,
		},
		"all fields of a container": {
			with(`"command":["a"],"args":["b"],"workingDir":"/","envFrom":[{"secretRef":{"name":"a"}}],"env":[{"name":"A","value":"b"}],"volumeMounts":[{"name":"a","mountPath":"/a"}],"volumeDevices":[{"name":"b","devicePath":"/b"}],"terminationMessagePath":"/x","terminationMessagePolicy":"FallbackToLogsOnError","imagePullPolicy":"Never","securityContext":{"privileged":true},"stdin":true,"stdinOnce":true,"tty":true`),
			nil,
		},
		"a target that is not checked": {with(`"targetContainerName":"web"`), nil},
		"an empty target":              {with(`"targetContainerName":""`), nil},
		"no selector":                  {spec(`"selector":null`), []string{"spec.selector: Required value"}},
		"an empty selector":            {spec(`"selector":{"matchLabels":null}`), []string{"spec.selector: Invalid value"}},
		"a selector with a bad operator": {
			spec(`"selector":{"matchExpressions":[{"key":"a","operator":"Like"}]}`),
			[]string{"spec.selector.matchExpressions[0].operator: Invalid value"},
		},
		"numbers below": {
			spec(`"replicas":-1,"parallelism":-1,"activeDeadlineSeconds":-1,"ttlSecondsAfterFinished":-1`),
			[]string{
				"spec.replicas: Invalid value", "spec.parallelism: Invalid value", "spec.activeDeadlineSeconds: Invalid value",
				"spec.ttlSecondsAfterFinished: Invalid value",
			},
		},
		"no container": {containers(``), []string{"spec.template.ephemeralContainers: Required value"}},
		"ports and resources": {
			with(`"ports":[{"containerPort":1}],"resources":{"limits":{"cpu":"1"}}`), forbidden("ports", "resources"),
		},
		"empty resources are none": {with(`"resources":{}`), nil},
		"a broken lifecycle":       {with(`"lifecycle":{"preStop":{"exec":{}}}`), forbidden("lifecycle")},
		"policies of other containers": {
			with(`"resizePolicy":[{}],"restartPolicy":"","restartPolicyRules":[{}]`),
			forbidden("resizePolicy", "restartPolicy", "restartPolicyRules"),
		},
		"mounts of a part of a volume": {
			with(`"volumeMounts":[{"name":"a","mountPath":"/a"},{"name":"a","mountPath":"/b","subPath":"x"},{"name":"a","mountPath":"/c","subPathExpr":"$(A)"}]`),
			forbidden("volumeMounts[1].subPath", "volumeMounts[2].subPathExpr"),
		},
	} {
		t.Run(why, func(t *testing.T) {
			job := &v1alpha1.EphemeralJob{}
			validationtest.Patched(t, validEphemeralJob, c.patch, job)
			if diff := cmp.Diff(c.want, validationtest.Places(validate(job))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEphemeralJobUpdate(t *testing.T) {
	for why, c := range map[string]struct {
		patch string
		want  []string
	}{
		"nothing changes": {``, nil},
		"what can change": {
			`{"spec":{"replicas":1,"parallelism":2,"paused":true,"activeDeadlineSeconds":1,"ttlSecondsAfterFinished":0},"metadata":{"labels":{"a":"b"}}}`,
			nil,
		},
		"what pods keep": {
			`{"spec":{"template":{"ephemeralContainers":[{"name":"shell","image":"busybox:2"}]}}}`,
			[]string{"spec.template: Forbidden"},
		},
		"which pods the job is for": {
			`{"spec":{"selector":{"matchLabels":{"app":"db"}}}}`, []string{"spec.selector: Forbidden"},
		},
		"an empty list is none": {`{"spec":{"selector":{"matchExpressions":[]}}}`, nil},
	} {
		t.Run(why, func(t *testing.T) {
			stored, job := &v1alpha1.EphemeralJob{}, &v1alpha1.EphemeralJob{}
			validationtest.Patched(t, validEphemeralJob, ``, stored)
			validationtest.Patched(t, validEphemeralJob, c.patch, job)
			if diff := cmp.Diff(c.want, validationtest.Places(validateUpdate(job, stored))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzEphemeralJob decodes two jobs: the functions do not panic, change nothing, and accept an update that changes
// nothing.
func FuzzEphemeralJob(f *testing.F) {
	f.Add(validEphemeralJob, `{}`)
	f.Add(`{"spec":{"selector":{"matchExpressions":[{"operator":"In"}]},"template":{"ephemeralContainers":[{"volumeMounts":[{}],"lifecycle":{}}]}}}`,
		validEphemeralJob)
	f.Fuzz(func(t *testing.T, object, stored string) {
		job, before := &v1alpha1.EphemeralJob{}, &v1alpha1.EphemeralJob{}
		if json.Unmarshal([]byte(object), job) != nil || json.Unmarshal([]byte(stored), before) != nil {
			return
		}
		was := job.DeepCopy()
		_, _ = validate(job), validateUpdate(job, before)
		if faults := validateUpdate(job, was); len(faults) > 0 {
			t.Errorf("no change is forbidden, or the job has changed: %v", faults)
		}
	})
}
