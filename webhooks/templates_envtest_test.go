//go:build envtest

package webhooks_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/rig/reviewtest"
)

const ofJob = `{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"b"}]}}}}`

func advancedCronJobs() entry {
	return entry{Kind: reviewtest.Kind{
		Name: "AdvancedCronJob", Bad: `{"template":{"jobTemplate":null}}`, Code: 422, At: []string{"spec.template"},
		Reworded: map[string]string{"an empty policy, which only admission's defaults allow": ""},
		Spec:     as(`{"schedule":"@daily","template":{"jobTemplate":` + ofJob + `}}`),
		Refused: map[string][]string{"v1beta1": {
			"spec.template.imageListPullJobTemplate.spec.completionPolicy.ttlSecondsAfterFinished",
		}},
	}, own: testChildren, policy: reviewCronJobs}
}

// testChildren has the API server validate what is created, and default its pods. What OpenKruise has not stored can be
// added.
func testChildren(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
	const at = "spec.template.jobTemplate.spec"
	of := func(spec string) string { return `{"template":{"jobTemplate":{"spec":` + spec + `}}}` }
	k.Creations(t, g, denied, map[string]reviewtest.Creation{
		"no restart policy": {
			Patch: of(`{"template":{"spec":{"restartPolicy":null}}}`), Want: at + ".template.spec.restartPolicy",
		},
		"bad container": {
			Patch: of(`{"template":{"spec":{"containers":[{"name":"A b"}]}}}`), Want: at + ".template.spec.containers[0].name",
		},
		"bad Job": {Patch: of(`{"parallelism":-1}`), Want: at + ".parallelism"},
	})
	nodes := k.New(t, "v1beta1", g.Namespace(t), `{"template":{"jobTemplate":null,
		"broadcastJobTemplate":`+strings.Replace(ofJob, `"restartPolicy":"Never",`, "", 1)+`}}`)
	o := k.New(t, "v1alpha1", nodes.GetNamespace(), "")
	for _, o := range []*unstructured.Unstructured{o, nodes} {
		if err := g.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	stored := k.New(t, "v1beta1", o.GetNamespace(), "")
	if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(o), stored); err != nil {
		t.Fatal(err)
	}
	pod := reviewtest.Field(stored, "spec", "template", "jobTemplate", "spec", "template", "spec")
	if fields, _ := pod.(map[string]any); fields["dnsPolicy"] != "ClusterFirst" ||
		reviewtest.Field(stored, "spec", "concurrencyPolicy") != "Allow" {
		t.Errorf("stored %v", stored.Object["spec"])
	}
	labels := []string{"spec", "template", "broadcastJobTemplate", "metadata", "labels"}
	if err := unstructured.SetNestedStringMap(nodes.Object, map[string]string{"app": "cleanup"}, labels...); err != nil {
		t.Fatal(err)
	}
	if err := g.Client.Update(t.Context(), nodes); err != nil ||
		reviewtest.Field(nodes, append(labels, "app")...) != "cleanup" {
		t.Errorf("the labels of the children: %v, stored %v", err, reviewtest.Field(nodes, labels...))
	}
}

func reviewCronJobs(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
	pull := func(fields string) string {
		return `{"template":{"jobTemplate":null,"imageListPullJobTemplate":{"spec":{"images":["a"],"completionPolicy":` +
			fields + `}}}}`
	}
	k.Creations(t, g, k.PolicyName(), map[string]reviewtest.Creation{
		"Jobs":           {Version: "v1beta1", Patch: ``},
		"pulls":          {Version: "v1beta1", Patch: pull(`{}`)},
		"empty schedule": {Version: "v1beta1", Patch: `{"schedule":""}`, Want: "spec.schedule"},
		"two zones":      {Version: "v1beta1", Patch: `{"schedule":"TZ=UTC @daily","timeZone":"UTC"}`, Want: "spec.schedule"},
		"local zone":     {Version: "v1beta1", Patch: `{"timeZone":"LOCAL"}`, Want: "spec.timeZone"},
		"good zone":      {Version: "v1beta1", Patch: `{"timeZone":"Asia/Shanghai"}`},
		"negative deadline": {
			Version: "v1beta1", Patch: `{"startingDeadlineSeconds":-1}`, Want: "spec.startingDeadlineSeconds",
		},
		"endless deadline": {
			Version: "v1beta1", Patch: `{"startingDeadlineSeconds":9223372037}`, Want: "spec.startingDeadlineSeconds",
		},
		"negative limit": {Version: "v1beta1", Patch: `{"failedJobsHistoryLimit":-1}`, Want: "spec.failedJobsHistoryLimit"},
		"negative limit too": {
			Version: "v1beta1", Patch: `{"successfulJobsHistoryLimit":-1}`, Want: "spec.successfulJobsHistoryLimit",
		},
		"limits of zero": {Version: "v1beta1", Patch: `{"failedJobsHistoryLimit":0,"successfulJobsHistoryLimit":0}`},
		"no template":    {Version: "v1beta1", Patch: `{"template":{"jobTemplate":null}}`, Want: "spec.template"},
		"two templates": {
			Version: "v1beta1", Patch: strings.Replace(pull(`{}`), `"jobTemplate":null,`, "", 1), Want: "spec.template",
		},
		"allowed pulls": {
			Version: "v1beta1", Patch: `{"concurrencyPolicy":"Allow",` + pull(`{}`)[1:], Want: "spec.concurrencyPolicy",
		},
		"endless pulls": {Version: "v1beta1", Patch: pull(`{"type":"Never"}`), Want: "completionPolicy.type"},
		"pulls that leave": {
			Version: "v1beta1", Patch: pull(`{"ttlSecondsAfterFinished":1}`), Want: "completionPolicy.ttlSecondsAfterFinished",
		},
		"pulls for days": {
			Version: "v1beta1", Patch: pull(`{"activeDeadlineSeconds":86401}`), Want: "completionPolicy.activeDeadlineSeconds",
		},
		"pulls for a day": {Version: "v1beta1", Patch: pull(`{"activeDeadlineSeconds":86400}`)},
	})
	template := reviewtest.Field(k.New(t, "v1beta1", "", ""), "spec", "template")
	k.With(pull(`{}`)).Updates(t, g, k.PolicyName(), map[string]reviewtest.Update{"another template": {
		Field: "template",
		Value: template, Want: "spec",
	}})
}

func ephemeralJobs() entry {
	return entry{Kind: reviewtest.Kind{
		Name: "EphemeralJob", Versions: []string{"v1alpha1"}, Bad: `{"parallelism":-1}`, Code: 422,
		At: []string{"spec.parallelism"},
		Spec: as(`{"selector":{"matchLabels":{"app":"web"}},"template":{"ephemeralContainers":[{"name":"shell",` +
			`"image":"busybox:1"}]}}`),
	}, own: testContainers, policy: reviewEphemeralJobs}
}

// testContainers has the API server validate containers.
func testContainers(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
	const at = "spec.template.ephemeralContainers[0]"
	of := func(more string) string {
		return `{"template":{"ephemeralContainers":[{"name":"a","image":"b",` + more + `}]}}`
	}
	mount := func(name string) string { return `{"name":"` + name + `","mountPath":"/x"}` }
	k.Creations(t, g, denied, map[string]reviewtest.Creation{
		"a variable": {Patch: of(`"env":[{"name":"a=b"}]`), Want: at + ".env[0].name: "},
		"privileges": {
			Patch: of(`"securityContext":{"allowPrivilegeEscalation":false,"privileged":true}`), Want: at + ".securityContext: ",
		},
		"a path twice": {
			Patch: of(`"volumeMounts":[` + mount("x") + "," + mount("y") + `]`), Want: at + ".volumeMounts[1].mountPath: ",
		},
		"a device": {Patch: of(`"volumeMounts":[` + mount("x") + `],"volumeDevices":[{"name":"y","devicePath":"/y"}]`)},
	})
}

func reviewEphemeralJobs(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
	const at = "spec.template.ephemeralContainers"
	with := func(fields string) string {
		return `{"template":{"ephemeralContainers":[{"name":"shell","image":"busybox:1",` + fields + `}]}}`
	}
	k.Creations(t, g, k.PolicyName(), map[string]reviewtest.Creation{
		"nothing more": {},
		"everything": {
			Patch: `{"replicas":0,"parallelism":0,"paused":true,"activeDeadlineSeconds":0,"ttlSecondsAfterFinished":0}`,
		},
		"an expression": {Patch: `{"selector":{"matchLabels":null,"matchExpressions":[{"key":"a","operator":"Exists"}]}}`},
		"all fields": {
			Patch: with(`"command":["a"],"env":[{"name":"A","value":"b"}],"imagePullPolicy":"Never",` +
				`"terminationMessagePolicy":"File","tty":true,"targetContainerName":"x","resources":{},"ports":[]`),
		},
		"an empty selector":   {Patch: `{"selector":{"matchLabels":null}}`, Want: "spec.selector: "},
		"negative pods":       {Patch: `{"parallelism":-1}`, Want: "spec.parallelism: "},
		"a negative deadline": {Patch: `{"activeDeadlineSeconds":-1}`, Want: "spec.activeDeadlineSeconds: "},
		"a negative life":     {Patch: `{"ttlSecondsAfterFinished":-1}`, Want: "spec.ttlSecondsAfterFinished: "},
		"no container":        {Patch: `{"template":{"ephemeralContainers":[]}}`, Want: at},
		"an empty container":  {Patch: `{"template":{"ephemeralContainers":[{}]}}`, Want: at},
		"a bad name":          {Patch: `{"template":{"ephemeralContainers":[{"name":"A b","image":"b"}]}}`, Want: at},
		"a duplicate": {
			Patch: `{"template":{"ephemeralContainers":[{"name":"a","image":"b"},{"name":"a","image":"b"}]}}`, Want: at,
		},
		"a space":             {Patch: `{"template":{"ephemeralContainers":[{"name":"a","image":" b"}]}}`, Want: at},
		"a pull policy":       {Patch: with(`"imagePullPolicy":"PullThreeTimes"`), Want: at},
		"a message policy":    {Patch: with(`"terminationMessagePolicy":"Mail"`), Want: at},
		"ports":               {Patch: with(`"ports":[{"containerPort":1}]`), Want: at},
		"resources":           {Patch: with(`"resources":{"limits":{"cpu":"1"}}`), Want: at},
		"a probe":             {Patch: with(`"readinessProbe":{"tcpSocket":{"port":1}}`), Want: at},
		"a lifecycle":         {Patch: with(`"lifecycle":{"preStop":{"sleep":{"seconds":1}}}`), Want: at},
		"a restart policy":    {Patch: with(`"restartPolicy":"Always"`), Want: at},
		"a part of a volume":  {Patch: with(`"volumeMounts":[{"name":"a","mountPath":"/a","subPath":"b"}]`), Want: at},
		"a part by a formula": {Patch: with(`"volumeMounts":[{"name":"a","mountPath":"/a","subPathExpr":"b"}]`), Want: at},
	})
	containers := []any{map[string]any{"name": "shell", "image": "busybox:2"}}
	k.Updates(t, g, k.PolicyName(), map[string]reviewtest.Update{
		"paused":           {Field: "paused", Value: true},
		"pods":             {Field: "parallelism", Value: int64(4)},
		"another image":    {Field: "template.ephemeralContainers", Value: containers, Want: "spec.template: "},
		"another selector": {Field: "selector.matchLabels", Value: map[string]any{"app": "db"}, Want: "spec.selector: "},
		"negative pods":    {Field: "parallelism", Value: int64(-1), Want: "spec.parallelism: "},
	})
}
