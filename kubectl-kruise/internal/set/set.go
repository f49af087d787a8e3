// Package set adds the kinds of apps.kruise.io to the commands of kubectl set.
//
// What a command writes is decided by pure functions: Image, Env, Resources and ServiceAccount return a JSON patch of
// the changed fields alone, which names the containers that it was decided upon.
package set

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/set"
	"k8s.io/kubectl/pkg/cmd/set/env"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
	"github.com/kruisekit/kruisekit/write"
)

// New returns the command set with all of its subcommands.
func New(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := set.NewCmdSet(f, streams)
	cmd.ResetCommands()
	extend := func(sub *cobra.Command, e target.Extension) *cobra.Command { return target.Extend(f, streams, sub, e) }
	cmd.AddCommand(
		extend(set.NewCmdImage(f, streams), target.Extension{Run: setImage, Split: splitPairs}),
		extend(set.NewCmdResources(f, streams), target.Extension{Run: setResources}),
		extend(set.NewCmdEnv(f, streams), target.Extension{Run: setEnv, Split: splitEnv}),
		extend(set.NewCmdServiceAccount(f, streams), target.Extension{Run: setServiceAccount, Split: splitLast}),
		set.NewCmdSelector(f, streams),
		set.NewCmdSubject(f, streams),
	)
	return cmd
}

func splitPairs(args []string) (objects, pairs []string, err error) {
	return cmdutil.GetResourcesAndPairs(args, "image")
}

func splitEnv(args []string) (objects, variables []string, err error) {
	objects, variables, ok := env.SplitEnvironmentFromResources(args)
	if !ok {
		return nil, nil, fmt.Errorf("all resources must be specified before environment changes: %v", args)
	}
	return objects, variables, nil
}

func splitLast(args []string) (objects, last []string, err error) {
	if len(args) == 0 {
		return nil, nil, nil
	}
	return args[:len(args)-1], args[len(args)-1:], nil
}

func setImage(c target.Command, objects []target.Object, pairs []string) error {
	images, _, err := cmdutil.ParsePairs(pairs, "image", false)
	if err != nil {
		return err
	}
	if len(images) == 0 {
		return errors.New("at least one image update is required")
	}
	return each(c, objects, "image updated", func(o *unstructured.Unstructured) ([]write.Op, error) {
		return Image(o, images)
	})
}

// parseResources reads a list such as cpu=200m,memory=512Mi.
func parseResources(text string) (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	for assignment := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(assignment, "=")
		switch quantity, err := resource.ParseQuantity(value); {
		case text == "":
		case !ok || err != nil:
			return nil, fmt.Errorf("resource %q must be <resource>=<value> with a quantity such as 200m", assignment)
		default:
			list[corev1.ResourceName(name)] = quantity
		}
	}
	return list, nil
}

func setResources(c target.Command, objects []target.Object, _ []string) error {
	limits, err := parseResources(c.Text("limits"))
	if err != nil {
		return err
	}
	requests, err := parseResources(c.Text("requests"))
	if err != nil {
		return err
	}
	requirements := corev1.ResourceRequirements{Limits: limits, Requests: requests}
	if len(requirements.Limits)+len(requirements.Requests) == 0 {
		return errors.New("you must specify an update to requests or limits (in the form of --requests/--limits)")
	}
	return each(c, objects, "resource requirements updated", func(o *unstructured.Unstructured) ([]write.Op, error) {
		return Resources(o, c.Text("containers"), requirements)
	})
}

func setServiceAccount(c target.Command, objects []target.Object, name []string) error {
	return each(c, objects, "serviceaccount updated", func(o *unstructured.Unstructured) ([]write.Op, error) {
		return ServiceAccount(o, name[0])
	})
}

// each patches one object after the other, and goes on after a failure. An object without a change is left alone.
func each(
	c target.Command, objects []target.Object, operation string,
	decide func(*unstructured.Unstructured) ([]write.Op, error),
) error {
	var errs []error
	for _, o := range objects {
		ops, err := decide(o.Unstructured)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %q: %w", o.Info.Mapping.Resource.GroupResource(), o.GetName(), err))
			continue
		}
		if len(ops) == 0 {
			continue
		}
		patched, err := c.Patch(o, ops, "")
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, c.Print(patched, operation))
	}
	return errors.Join(errs...)
}

// found is a container of an object.
type found struct {
	corev1.Container
	path []string
}

// at returns the JSON pointer of a field.
func (f found) at(field string) string { return write.Pointer(append(f.path, field)...) }

// still returns the operation that makes a patch fail where another container is at the path.
func (f found) still() write.Op { return write.Test(f.at("name"), f.Name) }

// containers returns the init containers and the containers of an object whose names match a pattern.
func containers(o *unstructured.Unstructured, pattern string) ([]found, error) {
	var matching []found
	for _, field := range []string{"initContainers", "containers"} {
		list, err := kinds.Containers(o, field)
		if err != nil {
			return nil, err
		}
		for i, c := range list {
			matches, err := path.Match(pattern, c.Name)
			if err != nil {
				return nil, fmt.Errorf("read pattern %s: %w", pattern, err)
			}
			if matches {
				at := append(kinds.PodSpecPath(o), field, fmt.Sprint(i))
				matching = append(matching, found{Container: c, path: at})
			}
		}
	}
	if len(matching) == 0 {
		return nil, fmt.Errorf("unable to find container named %q", pattern)
	}
	return matching, nil
}
