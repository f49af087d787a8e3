package gitops

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"
)

const config = "../../../config"

// object in a state.
func (s state) object(t *testing.T, kind string) map[string]any {
	t.Helper()
	generation := s.generation
	if generation == 0 {
		generation = 2
	}
	o := map[string]any{"kind": kind, "metadata": map[string]any{"name": "x", "generation": generation}}
	for key, text := range map[string]string{"spec": s.spec, "status": s.status} {
		if text == "" {
			continue
		}
		encoded, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var u any
		if err := json.Unmarshal(encoded, &u); err != nil {
			t.Fatal(err)
		}
		o[key] = whole(u)
	}
	return o
}

// whole makes integers of numbers, as objects of API servers have them.
func whole(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			v[key] = whole(v[key])
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case float64:
		return int64(v)
	}
	return v
}

// health runs a check as Argo CD does: with the object as obj, and few libraries.
func health(script string, object map[string]any) (status, message string, err error) {
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.MathLibName: lua.OpenMath,
	} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return "", "", err
		}
	}
	l.SetGlobal("obj", table(l, object))
	if err := l.DoString(script); err != nil {
		return "", "", err
	}
	answer, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		return "", "", os.ErrInvalid
	}
	return answer.RawGetString("status").String(), answer.RawGetString("message").String(), nil
}

func table(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case map[string]any:
		t := l.NewTable()
		for key, value := range v {
			t.RawSetString(key, table(l, value))
		}
		return t
	case []any:
		t := l.NewTable()
		for _, value := range v {
			t.Append(table(l, value))
		}
		return t
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	}
	return lua.LNil
}

func TestArgoCD(t *testing.T) {
	paths, err := filepath.Glob(config + "/gitops/health/*.lua")
	if err != nil || len(paths) != 18 || len(states) != 18 {
		t.Fatalf("%d checks, states of %d kinds, %v", len(paths), len(states), err)
	}
	for kind, all := range states {
		script, err := os.ReadFile(filepath.Join(config, "gitops", "health", kind+".lua"))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		healthy := false
		for _, s := range all {
			got, message, err := health(string(script), s.object(t, kind))
			if err != nil || got != s.argo || !strings.Contains(message, s.message) {
				t.Errorf("%s: %s: %s %q, %v; want %s %q", kind, s.why, got, message, err, s.argo, s.message)
			}
			healthy = healthy || got == "Healthy"
		}
		if !healthy {
			t.Errorf("%s is never healthy", kind)
		}
		// Any object that an API server stores has an answer.
		if _, _, err := health(string(script), state{}.object(t, kind)); err != nil {
			t.Errorf("%s: an object without a spec and a status: %v", kind, err)
		}
	}
}

// Checks read fields that the kinds have.
func TestFieldsExist(t *testing.T) {
	for kind := range states {
		script, err := os.ReadFile(filepath.Join(config, "gitops", "health", kind+".lua"))
		if err != nil {
			t.Fatal(err)
		}
		paths, err := filepath.Glob(config + "/crd/bases/*_" + strings.ToLower(kind) + "s.yaml")
		if err != nil || len(paths) != 1 {
			t.Fatalf("%s: %v, %v", kind, paths, err)
		}
		text, err := os.ReadFile(paths[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\b(?:status|spec|rolling|strategy)\.(\w+)`).FindAllStringSubmatch(string(script), -1) {
			if m[1] != "partition" && !strings.Contains(string(text), " "+m[1]+":\n") {
				t.Errorf("%s has no field %s", kind, m[1])
			}
		}
	}
}

type expressions struct {
	Spec struct {
		HealthCheckExprs []struct {
			APIVersion, Kind            string
			Current, InProgress, Failed string
		}
	}
}

// Expressions of Flux say of an object what the checks of Argo CD say: failed is Degraded, current is Healthy. A pause is
// not current, and a partition that cannot be counted is.
func TestFlux(t *testing.T) {
	text, err := os.ReadFile(config + "/gitops/flux.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all expressions
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		// The page shows the file as part of a Kustomization, with its other fields.
		if err := yaml.Unmarshal(text, &all); err != nil {
			t.Fatal(err)
		}
	}
	env, err := cel.NewEnv(cel.OptionalTypes(), cel.Variable("spec", cel.DynType), cel.Variable("status", cel.DynType),
		cel.Variable("metadata", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	holds := func(expression string, object map[string]any) bool {
		if expression == "" {
			return false
		}
		ast, issues := env.Compile(expression)
		if issues.Err() != nil {
			t.Fatalf("%s: %v", expression, issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		given := map[string]any{"spec": map[string]any{}, "status": map[string]any{}, "metadata": object["metadata"]}
		for _, key := range []string{"spec", "status"} {
			if object[key] != nil {
				given[key] = object[key]
			}
		}
		value, _, err := program.Eval(given)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			return false
		}
		return value.Value() == true
	}
	if len(all.Spec.HealthCheckExprs) < 8 {
		t.Fatalf("%d kinds have expressions", len(all.Spec.HealthCheckExprs))
	}
	for _, e := range all.Spec.HealthCheckExprs {
		if len(states[e.Kind]) == 0 {
			t.Errorf("%s is no kind", e.Kind)
		}
		for _, s := range states[e.Kind] {
			o := s.object(t, e.Kind)
			failed, current := holds(e.Failed, o), holds(e.Current, o)
			if failed != (s.argo == "Degraded") {
				t.Errorf("%s: %s: failed is %t, and Argo CD says %s", e.Kind, s.why, failed, s.argo)
			}
			if s.argo == "Progressing" && current && !slices.Contains(loose, e.Kind+": "+s.why) ||
				s.argo == "Healthy" && !current && !slices.Contains(endless, s.why) {
				t.Errorf("%s: %s: current is %t, and Argo CD says %s", e.Kind, s.why, current, s.argo)
			}
		}
	}
}

var (
	// loose are rollouts that the expressions do not count, because a partition may be a share.
	loose = []string{"StatefulSet: a rollout", "DaemonSet: a rollout"}
	// endless are jobs for which Flux must not wait.
	endless = []string{"a job without an end"}
)

// What kstatus says without expressions, which Flux, Helm 4 and kubectl plugins use: a new spec is under way, and a
// workload that stands still has failed.
func TestKstatus(t *testing.T) {
	for kind, all := range states {
		for _, s := range all {
			got, err := status.Compute(&unstructured.Unstructured{Object: s.object(t, kind)})
			if err != nil {
				t.Errorf("%s: %s: %v", kind, s.why, err)
				continue
			}
			want := status.CurrentStatus
			switch {
			case strings.Contains(s.status, "observedGeneration: 1"):
				want = status.InProgressStatus
			case strings.Contains(s.status, "type: Stalled"):
				want = status.FailedStatus
			}
			if got.Status != want {
				t.Errorf("%s: %s: %s, want %s", kind, s.why, got.Status, want)
			}
		}
	}
}
