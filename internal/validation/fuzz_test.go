package validation_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
)

// defaulted is an object with defaults.
type defaulted interface {
	runtime.Object
	Default()
}

// kind is the functions of a kind. Whole reports that defaults do not change the faults.
type kind struct {
	whole  bool
	fresh  func() defaulted
	check  func(defaulted) field.ErrorList
	update func(object, stored defaulted) field.ErrorList
}

// kindOf adapts typed functions; update is nil for a kind whose fields can all change.
func kindOf[T any, P interface {
	*T
	defaulted
}](whole bool, check func(P) field.ErrorList, update func(P, P) field.ErrorList) kind {
	k := kind{whole: whole, fresh: func() defaulted { return P(new(T)) }, check: func(o defaulted) field.ErrorList {
		return check(o.(P))
	}}
	k.update = func(object, stored defaulted) field.ErrorList {
		if update == nil {
			return nil
		}
		return update(object.(P), stored.(P))
	}
	return k
}

func kinds() map[string]kind {
	return map[string]kind{
		"CloneSet": kindOf(true, validation.CloneSet, validation.CloneSetUpdate),
		"StatefulSet": kindOf(true, validation.StatefulSet, func(set, stored *appsv1beta1.StatefulSet) field.ErrorList {
			_, faults := validation.StatefulSetExpansion(set, stored)
			return append(faults, validation.StatefulSetUpdate(set, stored)...)
		}),
		"DaemonSet": kindOf(true, validation.DaemonSet, validation.DaemonSetUpdate),
		"SidecarSet": kindOf(true, func(set *appsv1beta1.SidecarSet) field.ErrorList {
			_ = validation.SidecarSetWarnings(set)
			return validation.SidecarSet(set)
		}, func(set, other *appsv1beta1.SidecarSet) field.ErrorList {
			_ = validation.SidecarSetConflicts(set, []*appsv1beta1.SidecarSet{other})
			return validation.SidecarSetUpdate(set, other)
		}),
		"AdvancedCronJob": kindOf(true, func(job *appsv1beta1.AdvancedCronJob) field.ErrorList {
			_ = validation.AdvancedCronJobChildren(job)
			return validation.AdvancedCronJob(job)
		}, validation.AdvancedCronJobUpdate),
		"BroadcastJob":     kindOf[appsv1beta1.BroadcastJob](true, validation.BroadcastJob, nil),
		"ImagePullJob":     kindOf(false, validation.ImagePullJob, validation.ImagePullJobUpdate),
		"ImageListPullJob": kindOf(false, validation.ImageListPullJob, nil),
		"NodeImage":        kindOf(false, validation.NodeImage, nil),
		"ContainerRecreateRequest": kindOf(true, validation.ContainerRecreateRequest,
			validation.ContainerRecreateRequestUpdate),
	}
}

// FuzzKinds decodes two objects of each kind: the functions neither panic nor change an object, and an object that does
// not change is a valid update.
func FuzzKinds(f *testing.F) {
	for _, spec := range []string{
		`{}`, `null`, `{"selector":{}}`,
		`{"replicas":-1,"updateStrategy":{"rollingUpdate":{"maxUnavailable":"x%","partition":"9999999999%"}}}`,
		`{"updateStrategy":{"rollingUpdate":{"inPlaceUpdateStrategy":{"imagePreDownloadParallelism":"-1"},"scatterStrategy":[{}],"priorityStrategy":{"weightPriority":[{"weight":-1}]}}}}`,
		`{"selector":{"matchExpressions":[{"key":"a","operator":"Like"}]},"namespaceSelector":{},"containers":[{"resourcesPolicy":{},"transferEnv":[{"sourceContainerNameFrom":{"fieldRef":{}}}]}]}`,
		`{"containers":[{"name":"a","upgradeStrategy":{"upgradeType":"HotUpgrade"},"resourcesPolicy":{"resourcesExpr":{"limits":{"cpu":"max(cpu"}}}}],"patchPodMetadata":[{"annotations":{"":""}}]}`,
		`{"injectionStrategy":{"revision":{}},"updateStrategy":{"type":"Odd","partition":"%","selector":{}},"initContainers":[{"restartPolicy":"Always"}]}`,
		`{"image":":","images":[":",""],"selector":{"names":["",""]},"podSelector":{},"parallelism":"x","completionPolicy":{"type":"Never","activeDeadlineSeconds":1}}`,
		`{"parallelism":"-1%","completionPolicy":{"type":"Never","ttlSecondsAfterFinished":-1},"failurePolicy":{"type":"x","restartLimit":-1}}`,
		`{"schedule":"TZ=","timeZone":"","startingDeadlineSeconds":-1,"template":{"jobTemplate":{},"broadcastJobTemplate":{"spec":{"parallelism":"x"}},"imageListPullJobTemplate":{"spec":{"images":[""]}}}}`,
		`{"images":{"":{"tags":[{}]}}}`,
		`{"podName":"","containers":[{"name":""}],"strategy":{"failurePolicy":"x"},"activeDeadlineSeconds":-1}`,
	} {
		f.Add(
			`{"metadata":{"name":"a","annotations":{"apps.kruise.io/sidecarset-canary":"true","apps.kruise.io/sidecarset-base":"a"}},"spec":`+
				spec+`}`, `{}`)
	}
	f.Fuzz(func(t *testing.T, object, stored string) {
		for name, k := range kinds() {
			now, before := k.fresh(), k.fresh()
			if json.Unmarshal([]byte(object), now) != nil || json.Unmarshal([]byte(stored), before) != nil {
				continue
			}
			was, had := now.DeepCopyObject(), before.DeepCopyObject()
			faults := places(k.check(now))
			_ = k.update(now, before)
			if again := places(k.check(now)); !cmp.Equal(faults, again) {
				t.Errorf("%s: the faults are %v, and then %v", name, faults, again)
			}
			if forbidden := k.update(now, now.DeepCopyObject().(defaulted)); len(forbidden) > 0 {
				t.Errorf("%s: no change is forbidden: %v", name, forbidden)
			}
			quantities := cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })
			if diff := cmp.Diff([]any{was, had}, []any{now, before}, quantities, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: an object has changed: %s", name, diff)
			}
			if now.Default(); k.whole && !cmp.Equal(faults, places(k.check(now))) {
				t.Errorf("%s: the faults are %v, and with defaults %v", name, faults, places(k.check(now)))
			}
		}
	})
}
