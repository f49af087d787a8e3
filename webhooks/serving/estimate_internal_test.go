package serving

import (
	"encoding/json"
	"runtime"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What is reserved for a body is at least what its decoded form holds, whichever value it repeats.
func TestDecoded(t *testing.T) {
	cases := map[string]struct{ before, each, after string }{
		"containers": {`{"spec":{"containers":[`, `{}`, `]}}`},
		"volumes":    {`{"spec":{"volumes":[`, `{}`, `]}}`},
		"probes":     {`{"spec":{"containers":[`, `{"livenessProbe":{"httpGet":{}}}`, `]}}`},
		"fields":     {`{"a":{`, `"%d":{}`, `}}`},
		"in spec":    {`{"spec":{`, `"volumes%d":{}`, `}}`},
		"metadata":   {`{"metadata":{"labels":{"a":"b"},"managedFields":[{"fieldsV1":{`, `"f:%d":{}`, `}}]}}`},
		"probe": {
			`{"spec":{"containers":[`, `{"livenessProbe":{},"lifecycle":{},"securityContext":{},"resources":{}}`, `]}}`,
		},
		"sources": {
			`{"spec":{"volumes":[`, `{"azureDisk":{},"csi":{},"ephemeral":{},"projected":{},"iscsi":{},"rbd":{}}`, `]}}`,
		},
		"objects":   {`{"a":[`, `{"":0}`, `]}`},
		"nested":    {`{"a":[`, `{"a":{}}`, `]}`},
		"lists":     {`{"a":[`, `[]`, `]}`},
		"numbers":   {`{"a":[`, `0`, `]}`},
		"texts":     {`{"a":[`, `""`, `]}`},
		"arguments": {`{"spec":{"containers":[{"args":[`, `""`, `]}]}}`},
	}
	for name, c := range cases {
		for form, into := range map[string]func() any{
			"a pod": func() any { return &corev1.Pod{} }, "a map": func() any { return &map[string]any{} },
		} {
			t.Run(name+" in "+form, func(t *testing.T) {
				var repeated []string
				for i := range 10_000 {
					repeated = append(repeated, strings.ReplaceAll(c.each, "%d", strconv.Itoa(i)))
				}
				body := []byte(c.before + strings.Join(repeated, ",") + c.after)
				object := into()
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				if err := json.Unmarshal(body, object); err != nil {
					t.Fatal(err)
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				held, reserved := int64(after.HeapAlloc)-int64(before.HeapAlloc), decoded(body)+perByte*int64(len(body))
				if held > reserved {
					t.Errorf("%d bytes in memory from %d, more than the %d that are reserved", held, len(body), reserved)
				}
				runtime.KeepAlive(object)
				runtime.KeepAlive(body)
			})
		}
	}
}

// A list of 500 CloneSets, as kubectl asks for it in an older version, is one review. It fits where the memory is that
// of config/manager.
func TestListOfCloneSets(t *testing.T) {
	const fields = `{"manager":"kubectl","operation":"Update","apiVersion":"apps.kruise.io/v1beta1","time":"2026-01-01T00:00:00Z",` +
		`"fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:a":{},"f:b":{}},"f:labels":{".":{},"f:app":{}}},` +
		`"f:spec":{"f:replicas":{},"f:selector":{},"f:revisionHistoryLimit":{},"f:scaleStrategy":{},"f:minReadySeconds":{},` +
		`"f:updateStrategy":{".":{},"f:type":{},"f:maxUnavailable":{},"f:maxSurge":{},"f:partition":{}},` +
		`"f:template":{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{` +
		`"k:{\"name\":\"main\"}":{".":{},"f:name":{},"f:image":{},"f:ports":{".":{},"k:{\"containerPort\":80}":{".":{},"f:containerPort":{}}},` +
		`"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},` +
		`"f:readinessProbe":{".":{},"f:httpGet":{".":{},"f:path":{},"f:port":{}}},"f:volumeMounts":{".":{}}}},` +
		`"f:volumes":{".":{}},"f:tolerations":{},"f:serviceAccountName":{}}}}}},` +
		`{"manager":"kruise-manager","operation":"Update","subresource":"status","fieldsV1":{"f:status":{".":{},"f:replicas":{},` +
		`"f:readyReplicas":{},"f:availableReplicas":{},"f:updatedReplicas":{},"f:currentRevision":{},"f:updateRevision":{},` +
		`"f:labelSelector":{},"f:observedGeneration":{},"f:collisionCount":{},"f:conditions":{}}}}`
	const template = `{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"main","image":"nginx:1","ports":[{"containerPort":80}],` +
		`"env":[{"name":"A","value":"1"},{"name":"B","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}}],` +
		`"resources":{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"1","memory":"1Gi"}},` +
		`"readinessProbe":{"httpGet":{"path":"/","port":80}},"volumeMounts":[{"name":"a","mountPath":"/a"}]}],` +
		`"volumes":[{"name":"a","emptyDir":{}},{"name":"b","configMap":{"name":"b"}}],"tolerations":[{"key":"a"}],"securityContext":{}}}`
	const spec = `{"replicas":3,"selector":{"matchLabels":{"app":"web"}},"scaleStrategy":{},"updateStrategy":{"type":"InPlaceIfPossible"},` +
		`"template":` + template + `}`
	const object = `{"apiVersion":"apps.kruise.io/v1beta1","kind":"CloneSet","metadata":{"name":"web","namespace":"shop","managedFields":[` +
		fields + `]},"spec":` + spec + `,"status":{"conditions":[{"type":"A","status":"True"}]}}`
	list := []byte(`{"request":{"objects":[` + strings.Repeat(object+",", 499) + object + `]}}`)
	if !json.Valid(list) {
		t.Fatal("the list is no JSON")
	}
	s := newShares(Limits{Memory: 225 << 20, Requests: 1024}, meter{})
	if takes := perByte*int64(len(list)) + decoded(list); takes > s.largest() {
		t.Errorf("a list of %d KiB takes %d MiB, and a review may take %d", len(list)>>10, takes>>20, s.largest()>>20)
	} else {
		t.Logf("a list of %d KiB takes %d MiB of %d", len(list)>>10, takes>>20, s.largest()>>20)
	}
}
