package set

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/cmd/set/env"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
	"github.com/kruisekit/kruisekit/write"
)

func setEnv(c target.Command, objects []target.Object, variables []string) error {
	params, err := c.Flags().GetStringArray("env")
	if err != nil {
		return err
	}
	change := EnvChange{Pattern: c.Text("containers"), Keep: !c.Is("overwrite")}
	if change.Set, change.Remove, _, err = env.ParseEnv(append(params, variables...), c.In); err != nil {
		return err
	}
	if c.Text("from") != "" {
		from, err := varsFrom(c)
		if err != nil {
			return err
		}
		change.Set = append(change.Set, from...)
	}
	for i := range change.Set {
		change.Set[i].Name = c.Text("prefix") + change.Set[i].Name
	}
	if c.Is("list") {
		return list(c, objects, change)
	}
	return each(c, objects, "env updated", func(o *unstructured.Unstructured) ([]write.Op, error) {
		return Env(o, change)
	})
}

// varsFrom returns variables that refer to the keys of a ConfigMap or a Secret.
func varsFrom(c target.Command) ([]corev1.EnvVar, error) {
	from, err := c.Named(c.Text("from"))
	if err != nil {
		return nil, err
	}
	only, err := c.Flags().GetStringSlice("keys")
	if err != nil {
		return nil, err
	}
	return From(from.Unstructured, only)
}

// From returns variables that refer to the keys of a ConfigMap or a Secret: to all keys where only is empty.
func From(o *unstructured.Unstructured, only []string) ([]corev1.EnvVar, error) {
	data, _, err := unstructured.NestedMap(o.Object, "data")
	if err != nil {
		return nil, err
	}
	name, invalid := corev1.LocalObjectReference{Name: o.GetName()}, regexp.MustCompile("[^a-zA-Z0-9_]")
	var variables []corev1.EnvVar
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if len(only) > 0 && !slices.Contains(only, key) {
			continue
		}
		source := &corev1.EnvVarSource{}
		switch o.GetKind() {
		case "ConfigMap":
			source.ConfigMapKeyRef = &corev1.ConfigMapKeySelector{LocalObjectReference: name, Key: key}
		case "Secret":
			source.SecretKeyRef = &corev1.SecretKeySelector{LocalObjectReference: name, Key: key}
		default:
			return nil, fmt.Errorf("unsupported resource specified in --from: %s", o.GetKind())
		}
		variables = append(variables, corev1.EnvVar{
			Name: strings.ToUpper(invalid.ReplaceAllString(key, "_")), ValueFrom: source,
		})
	}
	return variables, nil
}

// list prints the variables as they would be after a change.
func list(c target.Command, objects []target.Object, change EnvChange) error {
	var clients kubernetes.Interface
	if c.Is("resolve") {
		var err error
		if clients, err = c.Factory.KubernetesClientSet(); err != nil {
			return err
		}
	}
	store := env.NewResourceStore()
	for _, o := range objects {
		matching, err := containers(o.Unstructured, change.Pattern)
		if err != nil {
			return err
		}
		for _, f := range matching {
			after, err := change.apply(f.Env)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.Out, "# %s, container %s\n", o.Info.ObjectName(), f.Name)
			for _, v := range after {
				switch {
				case v.ValueFrom == nil:
					fmt.Fprintf(c.Out, "%s=%s\n", v.Name, v.Value)
				case clients == nil:
					fmt.Fprintf(c.Out, "# %s from %s\n", v.Name, env.GetEnvVarRefString(v.ValueFrom))
				default:
					value, err := env.GetEnvVarRefValue(clients, o.GetNamespace(), store, v.ValueFrom, o.Unstructured, &f.Container)
					if err != nil {
						return err
					}
					fmt.Fprintf(c.Out, "%s=%s\n", v.Name, value)
				}
			}
		}
	}
	return nil
}
