package sidecarsets_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/sidecarsets"
	"github.com/kruisekit/kruisekit/test/rig/validationtest"
)

// newSidecarSet returns a set of one container, with a spec that is changed by a merge patch.
func newSidecarSet(t *testing.T, patch string) *v1beta1.SidecarSet {
	t.Helper()
	set := &v1beta1.SidecarSet{}
	set.Name = "a"
	const plain = `{"selector":{"matchLabels":{"app":"x"}},"containers":[{"name":"agent","image":"a:1"}]}`
	validationtest.Patched(t, plain, patch, &set.Spec)
	return set
}

func TestSidecarSet(t *testing.T) {
	long := strings.Repeat("a", 64)
	with := func(more string) string { return `{"containers":[{"name":"agent","image":"a:1",` + more + `}]}` }
	from := func(path string) string {
		return with(`"transferEnv":[{"envName":"A","sourceContainerNameFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"` +
			path + `"}}}]`)
	}
	policy := func(mode, regex, cpu, memory string) string {
		return with(
			fmt.Sprintf(`"resourcesPolicy":{"targetContainersMode":%q,"targetContainersNameRegex":%q,"resourcesExpr":{"limits":{"cpu":%q},"requests":{"memory":%q}}}`,
				mode, regex, cpu, memory))
	}
	rolling := func(more string) string { return `{"updateStrategy":{"type":"RollingUpdate",` + more + `}}` }
	pinned := func(strategy string) string {
		return `{"injectionStrategy":{"revision":{"customVersion":"v1","policy":"Partial"}},"updateStrategy":{"type":` +
			strategy + `}}`
	}
	const (
		invalid, required, unsupported, duplicate, forbidden = ": Invalid value", ": Required value", ": Unsupported value",
			": Duplicate value", ": Forbidden"
		source = "spec.containers[0].transferEnv[0].sourceContainerNameFrom.fieldRef.fieldPath"
		sized  = "spec.containers[0].resourcesPolicy"
		native = `"initContainers":[{"name":"n","image":"n:1","restartPolicy":"Always"%s}]`
	)
	cases := map[string]struct {
		why, patch string
		want       []string
	}{
		"good":        {"nothing is wrong", `{}`, nil},
		"no selector": {"no pod would get it", `{"selector":null}`, []string{"spec.selector" + required}},
		"odd value": {
			"no pod can have it", `{"selector":{"matchLabels":{"a":"?"}}}`, []string{"spec.selector.matchLabels" + invalid},
		},
		"odd namespaces": {
			"they are judged alike", `{"namespaceSelector":{"matchExpressions":[{"key":"?","operator":"Exists"}]}}`,
			[]string{"spec.namespaceSelector.matchExpressions[0].key" + invalid},
		},
		"no namespaces": {
			"all is said by leaving it out", `{"namespaceSelector":{}}`, []string{"spec.namespaceSelector" + invalid},
		},
		"no containers":  {"there is nothing to add", `{"containers":null}`, []string{"spec" + required}},
		"custom version": {"it becomes a label", `{"customVersion":"a b"}`, []string{"spec.customVersion" + invalid}},

		"an unnamed revision": {
			"which one?", `{"injectionStrategy":{"revision":{"policy":"Always"}}}`,
			[]string{"spec.injectionStrategy.revision" + required},
		},
		"an odd policy": {
			"there are two", `{"injectionStrategy":{"revision":{"revisionName":"a","policy":"Odd"}}}`,
			[]string{"spec.injectionStrategy.revision.policy" + unsupported},
		},

		"native, rolling": {
			"it cannot be updated", `{` + fmt.Sprintf(native, "") + `}`, []string{"spec.updateStrategy" + required},
		},
		"native, not updated": {
			"it need not be", `{` + fmt.Sprintf(native, "") + `,"updateStrategy":{"type":"NotUpdate"}}`, nil,
		},
		"partition, selector": {
			"they exclude each other", rolling(`"partition":1,"selector":{"matchLabels":{"a":"b"}}`),
			[]string{"spec.updateStrategy" + invalid},
		},
		"0%, selector": {
			"so it has always been", rolling(`"partition":"0%","selector":{"matchLabels":{"a":"b"}}`),
			[]string{"spec.updateStrategy" + invalid},
		},
		"empty update selector": {
			"no pod would be updated", rolling(`"selector":{}`), []string{"spec.updateStrategy.selector" + invalid},
		},
		"negative": {
			"no number of pods", rolling(`"partition":-1,"maxUnavailable":-1`),
			[]string{"spec.updateStrategy.partition" + invalid, "spec.updateStrategy.maxUnavailable" + invalid},
		},
		"odd percentages": {
			"whole ones only", rolling(`"partition":"33.3%","maxUnavailable":"5"`),
			[]string{"spec.updateStrategy.partition" + invalid, "spec.updateStrategy.maxUnavailable" + invalid},
		},
		"both priorities": {
			"one of them",
			rolling(
				`"priorityStrategy":{"weightPriority":[{"weight":101,"matchSelector":{}}],"orderPriority":[{"orderedKey":""}]}`),
			[]string{
				"spec.updateStrategy.priorityStrategy" + required,
				"spec.updateStrategy.priorityStrategy.weightPriority[0].weight" + required,
				"spec.updateStrategy.priorityStrategy.weightPriority[0].matchSelector" + required,
				"spec.updateStrategy.priorityStrategy.orderPriority[0].orderedKey" + required,
			},
		},
		"scatter": {
			"each label once",
			rolling(`"scatterStrategy":[{"key":"","value":"a"},{"key":"b","value":"*"},{"key":"b","value":"*"}]`),
			[]string{
				"spec.updateStrategy.scatterStrategy[0].key" + required, "spec.updateStrategy.scatterStrategy[2]" + required,
			},
		},
		"a share of new pods, no percentage": {
			"every new pod would be rejected, of whatever type the strategy is", pinned(`"NotUpdate","partition":"abc%"`),
			[]string{"spec.updateStrategy.partition" + invalid},
		},
		"a share of new pods, a fraction": {
			"the webhook of pods resolves a fraction", pinned(`"NotUpdate","partition":"12.5%"`), nil,
		},
		"new pods by an odd selector": {
			"pods that it may select would be rejected",
			pinned(`"NotUpdate","selector":{"matchExpressions":[{"key":"a","operator":"Odd"}]}`),
			[]string{"spec.updateStrategy.selector.matchExpressions[0].operator" + invalid},
		},
		"not looked at": {
			"no pod is updated", `{"updateStrategy":{"type":"NotUpdate","partition":-1,"selector":{}}}`, nil,
		},
		"a type of none": {
			"it is let in, with a warning", `{"updateStrategy":{"type":"Odd","partition":-1}}`, nil,
		},

		"odd place": {
			"there are two", with(`"podInjectPolicy":"Odd"`), []string{"spec.containers[0].podInjectPolicy" + unsupported},
		},
		"odd init": {
			"the field is ignored",
			`{"initContainers":[{"name":"i","podInjectPolicy":"Odd","shareVolumePolicy":{"type":"Odd"},"transferEnv":[{"sourceContainerNameFrom":{"fieldRef":{"fieldPath":"x"}}}]}]}`,
			nil,
		},
		"by a label":   {"the name stands there", from(`metadata.labels['example.com/biz']`), nil},
		"by a name":    {"that is of the pod", from(`metadata.name`), []string{source + invalid}},
		"by a bad key": {"there is no such label", from(`metadata.labels['a b']`), []string{source + invalid}},
		"by no path":   {"it is missing", from(``), []string{source + required}},
		"by no field":  {"then the plain name counts", with(`"transferEnv":[{"sourceContainerNameFrom":{}}]`), nil},
		"another version": {
			"fields have one", strings.Replace(from(`metadata.labels['a']`), `"v1"`, `"v2"`, 1),
			[]string{strings.TrimSuffix(source, "fieldPath") + "apiVersion" + unsupported},
		},
		"odd formulas": {
			"each is reported", policy("sum", ".*", "cpu*cpu", "cpu"),
			[]string{sized + ".resourcesExpr.limits.cpu" + invalid, sized + ".resourcesExpr.requests.memory" + invalid},
		},
		"formulas and own": {
			"one of them; no more is looked at",
			strings.Replace(policy("avg", "(", "", ""), `"name"`, `"resources":{"requests":{"cpu":"1"}},"name"`, 1),
			[]string{sized + forbidden},
		},
		"formulas of plain": {
			"it is over when others begin",
			`{"initContainers":[{"name":"i","resourcesPolicy":{"targetContainersMode":"sum","targetContainersNameRegex":".*","resourcesExpr":{"limits":{}}}}]}`,
			[]string{"spec.initContainers[0].resourcesPolicy" + invalid},
		},

		"hot, not empty": {
			"no pod could be created", with(`"upgradeStrategy":{"upgradeType":"HotUpgrade"}`),
			[]string{"spec.containers[0].upgradeStrategy.hotUpgradeEmptyImage" + required},
		},
		"hot, twice": {
			"one of the pair is there already",
			`{"containers":[{"name":"a","upgradeStrategy":{"upgradeType":"HotUpgrade","hotUpgradeEmptyImage":"e"}},{"name":"a-2"}]}`,
			[]string{"spec.containers[0].name" + duplicate},
		},
		"hot, too long": {
			"the name grows",
			`{"containers":[{"name":"` + long[:62] +
				`","upgradeStrategy":{"upgradeType":"HotUpgrade","hotUpgradeEmptyImage":"e"}}]}`,
			[]string{"spec.containers[0].name" + invalid, "spec.containers[0].name" + invalid},
		},

		"no annotations": {
			"there is nothing to write", `{"patchPodMetadata":[{"patchPolicy":"Retain"}]}`,
			[]string{"spec.patchPodMetadata[0].annotations" + required},
		},
		"odd annotations": {
			"they are no keys", `{"patchPodMetadata":[{"annotations":{"a b":"c"}}]}`,
			[]string{"spec.patchPodMetadata[0].annotations" + invalid},
		},
		"twice annotated": {
			"which one counts?", `{"patchPodMetadata":[{"annotations":{"a":"b"}},{"annotations":{"a":"c","d":"e"}}]}`,
			[]string{"spec.patchPodMetadata[1].annotations[a]" + duplicate},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set := newSidecarSet(t, c.patch)
			was := set.DeepCopy()
			got := validationtest.Places(sidecarsets.Validate(set))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%v", c.why, diff, sidecarsets.Validate(set))
			}
			if diff := cmp.Diff(was, set); diff != "" {
				t.Errorf("the set is changed: %s", diff)
			}
			set.Default()
			if again := validationtest.Places(sidecarsets.Validate(set)); !slices.Equal(got, again) {
				t.Errorf("with defaults there is another fault: %v, %v", got, again)
			}
		})
	}
}

func TestSidecarSetNames(t *testing.T) {
	for name, want := range map[string][]string{
		"a": nil, "A-1": nil, "a.b": {"metadata.name: Invalid value"}, strings.Repeat("a", 63): nil,
		strings.Repeat("a", 64): {"metadata.name: Invalid value"}, "a_b": {"metadata.name: Invalid value"},
	} {
		set := newSidecarSet(t, "{}")
		set.Name = name
		if diff := cmp.Diff(want, validationtest.Places(sidecarsets.Validate(set))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	set := newSidecarSet(t, "{}")
	set.Name, set.GenerateName = "", "set-"
	if got := sidecarsets.Validate(set); len(got) != 1 || got[0].Field != "metadata.name" {
		t.Errorf("the API server fills in a name before the webhooks are asked: %v", got)
	}
}

func TestSidecarSetUpdate(t *testing.T) {
	hot := `{"containers":[{"name":"agent","image":"a:1","upgradeStrategy":{"upgradeType":"HotUpgrade","hotUpgradeEmptyImage":"e"}}]}`
	cold := `{"containers":[{"name":"agent","image":"a:1","upgradeStrategy":{"upgradeType":"ColdUpgrade"}}]}`
	odd := strings.Replace(cold, "Cold", "Clod", 1)
	two := `{"containers":[{"name":"agent","image":"a:1"},{"name":"b"}]}`
	cases := map[string]struct {
		why, stored, now string
		want             []string
	}{
		"nothing":       {"it is the same", `{}`, `{}`, nil},
		"an image":      {"that is what updates are for", `{}`, `{"containers":[{"name":"agent","image":"a:2"}]}`, nil},
		"one more":      {"pods that exist would never get it", `{}`, two, []string{"spec.containers[1].name: Forbidden"}},
		"one less":      {"pods keep it", two, `{}`, nil},
		"one more init": {"only new pods have it", `{}`, `{"initContainers":[{"name":"i"}]}`, nil},
		"hot to cold": {
			why:    "pods have two containers of it",
			stored: hot,
			now:    cold,
			want:   []string{"spec.containers[0].upgradeStrategy.upgradeType: Forbidden"},
		},
		"none to hot": {"there was no type", `{}`, hot, nil},
		"odd to hot":  {"it was cold without having asked", odd, hot, nil},
		"odd to cold": {"that is what it was", odd, cold, nil},
		"odd to none": {"that is what it was", odd, `{}`, nil},
		"hot to odd": {
			why:    "pods have two containers of it",
			stored: hot,
			now:    odd,
			want:   []string{"spec.containers[0].upgradeStrategy.upgradeType: Forbidden"},
		},
		"cold to odd": {
			why:    "it is said for good",
			stored: cold,
			now:    odd,
			want:   []string{"spec.containers[0].upgradeStrategy.upgradeType: Forbidden"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			faults := sidecarsets.ValidateUpdate(newSidecarSet(t, c.now), newSidecarSet(t, c.stored))
			if diff := cmp.Diff(c.want, validationtest.Places(faults)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}
