package validation_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
)

func united(changes ...func(*v1beta1.UnitedDeployment)) *v1beta1.UnitedDeployment {
	u := &v1beta1.UnitedDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	labels := map[string]string{"app": "web"}
	u.Spec.Replicas = ptr.To[int32](4)
	u.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	u.Spec.Template.CloneSetTemplate = &v1beta1.CloneSetTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	u.Spec.Template.CloneSetTemplate.Spec.Template.Labels = labels
	u.Spec.Template.CloneSetTemplate.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	u.Spec.Topology.Subsets = []v1beta1.Subset{{Name: "a"}, {Name: "b"}}
	for _, change := range changes {
		change(u)
	}
	u.Default()
	return u
}

// withSubset changes the first subset.
func withSubset(change func(*v1beta1.Subset)) func(*v1beta1.UnitedDeployment) {
	return func(u *v1beta1.UnitedDeployment) { change(&u.Spec.Topology.Subsets[0]) }
}

func value(text string) *intstr.IntOrString { return ptr.To(intstr.Parse(text)) }

func TestValidate(t *testing.T) {
	type object = v1beta1.UnitedDeployment
	subset := withSubset
	adaptive := func(u *object) {
		u.Spec.Topology.ScheduleStrategy.Type = v1beta1.AdaptiveUnitedDeploymentScheduleStrategyType
	}
	stateful := func(u *object) {
		u.Spec.Template.StatefulSetTemplate = &v1beta1.StatefulSetTemplateSpec{
			ObjectMeta: u.Spec.Template.CloneSetTemplate.ObjectMeta,
		}
		u.Spec.Template.StatefulSetTemplate.Spec.Template = u.Spec.Template.CloneSetTemplate.Spec.Template
		u.Spec.Template.CloneSetTemplate = nil
	}
	deployed := func(u *object) {
		u.Spec.Template.DeploymentTemplate = &v1beta1.DeploymentTemplateSpec{
			ObjectMeta: u.Spec.Template.CloneSetTemplate.ObjectMeta,
		}
		u.Spec.Template.DeploymentTemplate.Spec.Template = u.Spec.Template.CloneSetTemplate.Spec.Template
		u.Spec.Template.CloneSetTemplate = nil
	}
	both := func(a, b func(*object)) func(*object) { return func(u *object) { a(u); b(u) } }
	for name, c := range map[string]struct {
		change func(*object)
		want   string
	}{
		"valid": {func(*object) {}, ""},
		"percentages that add up": {func(u *object) {
			u.Spec.Replicas = ptr.To[int32](5)
			u.Spec.Topology.Subsets[0].Replicas, u.Spec.Topology.Subsets[1].Replicas = value("50%"), value("50%")
		}, ""},
		"a long name": {func(u *object) { u.Name = strings.Repeat("x", 53) }, "metadata.name: Too long"},
		"no selector": {func(u *object) { u.Spec.Selector = nil }, "spec.selector: Required"},
		"another selector": {
			func(u *object) { u.Spec.Selector.MatchLabels = map[string]string{"app": "other"} },
			"spec.template.cloneSetTemplate.spec.template.metadata.labels",
		},
		"a CloneSet without labels": {func(u *object) { u.Spec.Template.CloneSetTemplate.Labels = nil }, ""},
		"a StatefulSet without labels": {
			both(stateful, func(u *object) { u.Spec.Template.StatefulSetTemplate.Labels = nil }),
			"spec.template.statefulSetTemplate.metadata.labels",
		},
		"no template": {
			func(u *object) { u.Spec.Template = v1beta1.SubsetTemplate{} }, "spec.template: Required",
		},
		"two templates": {
			func(u *object) { u.Spec.Template.DeploymentTemplate = &v1beta1.DeploymentTemplateSpec{} }, "spec.template: Invalid",
		},
		"an invalid CloneSet": {func(u *object) {
			u.Spec.Template.CloneSetTemplate.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		}, "spec.template.cloneSetTemplate.spec.template.spec.restartPolicy"},
		"replicas in a template": {
			both(stateful, func(u *object) { u.Spec.Template.StatefulSetTemplate.Spec.Replicas = ptr.To[int32](1) }),
			"spec.template.statefulSetTemplate.spec.replicas: Forbidden",
		},
		"reservation": {both(stateful, both(adaptive, func(u *object) {
			u.Spec.Topology.ScheduleStrategy.Adaptive = &v1beta1.AdaptiveUnitedDeploymentStrategy{ReserveUnschedulablePods: true}
		})), "spec.topology.scheduleStrategy"},
		"a negative time": {both(adaptive, func(u *object) {
			u.Spec.Topology.ScheduleStrategy.Adaptive = &v1beta1.AdaptiveUnitedDeploymentStrategy{
				UnschedulableDuration: ptr.To[int32](-1),
			}
		}), "unschedulableDuration"},
		"a subset without a name": {
			subset(func(s *v1beta1.Subset) { s.Name = "" }), "spec.topology.subsets[0].name: Required",
		},
		"a subset twice": {
			subset(func(s *v1beta1.Subset) { s.Name = "b" }), "spec.topology.subsets[1].name: Duplicate",
		},
		"many subsets": {
			func(u *object) { u.Spec.Topology.Subsets = make([]v1beta1.Subset, 513) }, "spec.topology.subsets: Too many",
		},
		"a patch of another type": {
			subset(func(s *v1beta1.Subset) { s.Patch.Raw = []byte(`{"spec":{"containers":"x"}}`) }),
			"spec.topology.subsets[0].patch: Invalid",
		},
		"a bad term": {subset(func(s *v1beta1.Subset) {
			s.NodeSelectorTerm.MatchExpressions = []corev1.NodeSelectorRequirement{{Key: "zone", Operator: "Near"}}
		}), "spec.topology.subsets[0].nodeSelectorTerm: Invalid"},
		"a bad toleration": {
			subset(func(s *v1beta1.Subset) { s.Tolerations = []corev1.Toleration{{Effect: "Never"}} }), "tolerations[0].effect",
		},
		"min above max": {
			subset(func(s *v1beta1.Subset) { s.MinReplicas, s.MaxReplicas = value("3"), value("2") }),
			"spec.topology.subsets[0].minReplicas",
		},
		"no number": {
			subset(func(s *v1beta1.Subset) { s.MaxReplicas = value("many") }), "spec.topology.subsets[0].maxReplicas",
		},
		"all limited": {func(u *object) {
			u.Spec.Topology.Subsets[0].MaxReplicas, u.Spec.Topology.Subsets[1].MaxReplicas = value("2"), value("9")
		}, "must have a subset without maxReplicas"},
		"shares beside bounds": {func(u *object) {
			u.Spec.Topology.Subsets[0].MaxReplicas, u.Spec.Topology.Subsets[1].Replicas = value("2"), value("2")
		}, "must have either"},
		"too large shares": {subset(func(s *v1beta1.Subset) { s.Replicas = value("5") }), "spec.topology.subsets: Invalid"},
		"shares and Adaptive": {
			both(adaptive, subset(func(s *v1beta1.Subset) { s.Replicas = value("2") })),
			"spec.topology.subsets[0].replicas: Forbidden",
		},
		"an unknown partition": {func(u *object) {
			u.Spec.UpdateStrategy.ManualUpdate = &v1beta1.ManualUpdate{Partitions: map[string]int32{"c": 1}}
		}, "spec.updateStrategy.manualUpdate.partitions"},
		"a partition of none": {both(deployed, func(u *object) {
			u.Spec.UpdateStrategy.ManualUpdate = &v1beta1.ManualUpdate{Partitions: map[string]int32{"a": 1}}
		}), "must be 0 with a deploymentTemplate"},
	} {
		t.Run(name, func(t *testing.T) {
			u := united(c.change)
			before := u.DeepCopy()
			got := validation.UnitedDeployment(u).ToAggregate()
			if c.want == "" && got != nil || c.want != "" && (got == nil || !strings.Contains(got.Error(), c.want)) {
				t.Errorf("got %v, want %q", got, c.want)
			}
			if !equality.Semantic.DeepEqual(u, before) {
				t.Error("the object changed")
			}
		})
	}
}

// A fault that leaves nothing to do is one of all faults.
func TestUnusable(t *testing.T) {
	if err := validation.UnitedDeploymentUnusable(united()); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*v1beta1.UnitedDeployment){
		func(u *v1beta1.UnitedDeployment) { u.Spec.Selector = nil },
		func(u *v1beta1.UnitedDeployment) { u.Spec.Template = v1beta1.SubsetTemplate{} },
		withSubset(func(s *v1beta1.Subset) { s.Name = "b" }),
	} {
		u := united(change)
		if err := validation.UnitedDeploymentUnusable(u); err == nil || len(validation.UnitedDeployment(u)) == 0 {
			t.Errorf("%+v can be used", u.Spec)
		}
	}
}

func TestValidateUpdate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1beta1.UnitedDeployment)
		want   string
	}{
		"nothing":   {func(*v1beta1.UnitedDeployment) {}, ""},
		"reordered": {func(u *v1beta1.UnitedDeployment) { s := u.Spec.Topology.Subsets; s[0], s[1] = s[1], s[0] }, ""},
		"renamed": {
			withSubset(func(s *v1beta1.Subset) { s.Name, s.Tolerations = "c", []corev1.Toleration{{Operator: "Exists"}} }), "",
		},
		"selector": {
			func(u *v1beta1.UnitedDeployment) { u.Spec.Selector.MatchLabels = map[string]string{"x": "y"} }, "spec.selector",
		},
		"term": {
			withSubset(func(s *v1beta1.Subset) { s.NodeSelectorTerm.MatchFields = []corev1.NodeSelectorRequirement{{}} }),
			"nodeSelectorTerm",
		},
		"tolerations": {
			withSubset(func(s *v1beta1.Subset) { s.Tolerations = []corev1.Toleration{{Operator: "Exists"}} }), "tolerations",
		},
	} {
		got := validation.UnitedDeploymentUpdate(united(c.change), united()).ToAggregate()
		if c.want == "" && got != nil || c.want != "" && (got == nil || !strings.Contains(got.Error(), c.want)) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// Of the template of a StatefulSet, few fields can be changed, and of that of an Advanced StatefulSet fewer.
func TestValidateTemplateUpdate(t *testing.T) {
	for change, allowed := range map[string]string{
		`{"replicas":7}`: "statefulSetTemplate advancedStatefulSetTemplate",
		`{"template":{"spec":{"hostNetwork":true}}}`:                 "statefulSetTemplate advancedStatefulSetTemplate",
		`{"updateStrategy":{"type":"OnDelete"}}`:                     "statefulSetTemplate advancedStatefulSetTemplate",
		`{"persistentVolumeClaimRetentionPolicy":{}}`:                "statefulSetTemplate",
		`{"ordinals":{"start":7}}`:                                   "statefulSetTemplate",
		`{"minReadySeconds":7}`:                                      "statefulSetTemplate",
		`{"selector":{}}`:                                            "",
		`{"serviceName":"other"}`:                                    "",
		`{"podManagementPolicy":"Parallel"}`:                         "",
		`{"revisionHistoryLimit":7}`:                                 "",
		`{"volumeClaimTemplates":[{"metadata":{"name":"data"}}]}`:    "",
		`{"reserveOrdinals":[7]}`:                                    "",
		`{"lifecycle":{}}`:                                           "",
		`{"scaleStrategy":{}}`:                                       "",
		`{"volumeClaimUpdateStrategy":{"type":"OnPVCDelete"}}`:       "",
		`{"updateStrategy":{"rollingUpdate":{"minReadySeconds":7}}}`: "statefulSetTemplate advancedStatefulSetTemplate",
	} {
		for kind, spec := range map[string]func(*v1beta1.SubsetTemplate) any{
			"statefulSetTemplate": func(t *v1beta1.SubsetTemplate) any {
				t.StatefulSetTemplate = &v1beta1.StatefulSetTemplateSpec{}
				return &t.StatefulSetTemplate.Spec
			},
			"advancedStatefulSetTemplate": func(t *v1beta1.SubsetTemplate) any {
				t.AdvancedStatefulSetTemplate = &v1beta1.AdvancedStatefulSetTemplateSpec{}
				return &t.AdvancedStatefulSetTemplate.Spec
			},
		} {
			was, is := united(), united()
			spec(&was.Spec.Template)
			changed := spec(&is.Spec.Template)
			if err := json.Unmarshal([]byte(change), changed); err != nil {
				t.Fatal(err)
			}
			if equality.Semantic.DeepEqual(is, was) {
				continue // the kind has no such field
			}
			faults := validation.UnitedDeploymentUpdate(is, was)
			if isAllowed := strings.Contains(" "+allowed, " "+kind); isAllowed != (len(faults) == 0) {
				t.Errorf("%s of %s: got %v", change, kind, faults)
			}
			if len(faults) > 0 &&
				(faults[0].Field != "spec.template."+kind+".spec" || faults[0].Type != field.ErrorTypeForbidden) {
				t.Errorf("%s of %s: got %v", change, kind, faults)
			}
		}
	}
}
