package webhooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4" // the one in the API server
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/advancedcronjob"
	"github.com/kruisekit/kruisekit/webhooks/broadcastjob"
	"github.com/kruisekit/kruisekit/webhooks/cloneset"
	"github.com/kruisekit/kruisekit/webhooks/containerrecreaterequest"
	"github.com/kruisekit/kruisekit/webhooks/daemonset"
	"github.com/kruisekit/kruisekit/webhooks/ephemeraljob"
	"github.com/kruisekit/kruisekit/webhooks/imagepull"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
	"github.com/kruisekit/kruisekit/webhooks/podprobemarker"
	"github.com/kruisekit/kruisekit/webhooks/podunavailablebudget"
	"github.com/kruisekit/kruisekit/webhooks/resourcedistribution"
	"github.com/kruisekit/kruisekit/webhooks/statefulset"
	"github.com/kruisekit/kruisekit/webhooks/uniteddeployment"
)

// noBudgets has no other budget.
type noBudgets struct{}

func (noBudgets) Objects(context.Context, string) ([]*policyv1beta1.PodUnavailableBudget, error) {
	return nil, nil
}

// allKinds are the webhooks of kinds by their groups and names, in front of an API server that has nothing.
func allKinds(t testing.TB) map[schema.GroupKind]kinds.Webhooks {
	t.Helper()
	api := interceptor.NewClient((&plaintest.Server{}).Client(), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil },
	})
	all, failed := map[schema.GroupKind]kinds.Webhooks{}, []error{}
	add := func(w kinds.Webhooks, err error) func(names ...string) {
		return func(names ...string) {
			failed = append(failed, err)
			for _, name := range names {
				all[plaintest.Kind(name)] = w
			}
		}
	}
	o := kinds.Options{HostNetworkHostPorts: true}
	add(advancedcronjob.New(api, o))("AdvancedCronJob")
	add(broadcastjob.New(api, o))("BroadcastJob")
	add(cloneset.New(api, o))("CloneSet")
	add(containerrecreaterequest.New(api, containerrecreaterequest.Options{}))("ContainerRecreateRequest")
	add(daemonset.New(api, o))("DaemonSet")
	add(ephemeraljob.New(api, o))("EphemeralJob")
	add(imagepull.New(imagepull.Options{Jobs: true}))("ImagePullJob", "ImageListPullJob", "NodeImage")
	add(podprobemarker.New(podprobemarker.Options{}))("PodProbeMarker")
	add(resourcedistribution.New(resourcedistribution.Options{On: true}))("ResourceDistribution")
	add(statefulset.New(api, statefulset.Options{Options: o, ExpandClaims: true}))("StatefulSet")
	add(uniteddeployment.New(api, o))("UnitedDeployment")
	budgets, err := podunavailablebudget.New(noBudgets{}, podunavailablebudget.Options{})
	all[schema.GroupKind{Group: "policy.kruise.io", Kind: "PodUnavailableBudget"}] = budgets
	if err := errors.Join(append(failed, err)...); err != nil {
		t.Fatal(err)
	}
	return all
}

// FuzzReviews: no request makes a webhook panic, a rejection has a code and a reason, and a patch fits what was sent.
func FuzzReviews(f *testing.F) {
	seeds := []string{
		`{}`, `null`, `[]`, `{"spec":null}`, `{"spec":{"template":{"spec":{"containers":[null,7,{"ports":[null,
			{"containerPort":1}]}],
			"volumes":7,"hostNetwork":true}},"volumeClaimTemplates":[null,{"metadata":7}],"burstReplicas":{},"parallelism":{}}}`,
		`{"spec":{"updateStrategy":{"type":"InPlaceOnly","partition":"","maxSurge":"-%",
			"rollingUpdate":{"maxUnavailable":"1e9%"}},
			"selector":{"matchExpressions":[{"operator":"In"}]},"replicas":-2147483648,"scaleStrategy":{"podsToDelete":["",
			"a"]}}}`,
		`{"metadata":{"annotations":{"kruisekit.dev/conversion-data":"{\"v1beta1\":[{\"path\":\"/spec\",\"is\":7}]}"}},` +
			`"spec":{}}`,
		`{"metadata":{"annotations":{"crr.apps.kruise.io/unready-acquired":"x",
			"crr.apps.kruise.io/sync-container-statuses":"["}},
			"spec":{"podName":"web","containers":[null,{"name":"app","ports":[]}]}}`,
		`{"metadata":{"finalizers":[]},"spec":{"image":"a","images":["a",":"],"parallelism":"-1","pullPolicy":null,
			"selector":{"names":["a"],"matchExpressions":[{}]}}}`,
		`{"spec":{"images":{"a/b":{"tags":[{"tag":"2"},null,{"tag":"1"}]},"":null}}}`,
		`{"spec":{"schedule":"@daily","template":{"jobTemplate":{"spec":{"template":7}},"broadcastJobTemplate":null,
			"ephemeralContainers":[null,{"volumeMounts":[{}]}]}}}`,
		`{"spec":{"replicas":3,"template":{"statefulSetTemplate":{"spec":{"volumeClaimTemplates":[{}],"template":[]}},
			"deploymentTemplate":7},
			"topology":{"subsets":[{"patch":1,"minReplicas":"-5%","maxReplicas":"x"}]}}}`,
	}
	for _, seed := range seeds {
		f.Add(seed, `{}`)
		f.Add(seed, seed)
	}
	all := allKinds(f)
	f.Fuzz(func(t *testing.T, now, stored string) {
		for kind, webhooks := range all {
			for _, path := range slices.Sorted(maps.Keys(webhooks)) {
				for _, version := range plaintest.Versions() {
					r := plaintest.Request(kind, version, now, stored)
					for _, r.Operation = range []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete} {
						fits(t, path, now, webhooks[path](t.Context(), r))
					}
				}
			}
		}
	})
}

// fits fails the test unless an answer has what every answer must have.
func fits(t *testing.T, path, now string, answer plaintest.Answer) {
	t.Helper()
	code := plaintest.Code(answer)
	if !answer.Allowed && (answer.Result.Message == "" || code < 400 || code >= 500) {
		t.Fatalf("%s: rejected without a reason: %+v", path, answer.Result)
	}
	if answer.Patch == nil || !json.Valid([]byte(now)) {
		return
	}
	patch, err := jsonpatch.DecodePatch(answer.Patch)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := patch.Apply([]byte(now)); err != nil {
		t.Errorf("%s: %v: %s", path, err, answer.Patch)
	}
}
