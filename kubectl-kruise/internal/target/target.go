package target

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
)

// Command is what an own command gets: its flags, and how to reach the API server.
type Command struct {
	*cobra.Command
	genericiooptions.IOStreams
	Factory cmdutil.Factory
}

// Object is an object that the command line names.
type Object struct {
	*unstructured.Unstructured
	// Info is how to reach it.
	Info *resource.Info
}

// Run runs a command for objects of our kinds.
type Run func(c Command, objects []Object, args []string) error

// Extension adds our kinds to a command of kubectl.
type Extension struct {
	// Run runs the command for objects of our kinds.
	Run Run
	// Takes reports whether the command is for an object that kubectl knows, too. Nil: for none.
	Takes func(o *unstructured.Unstructured) bool
	// Split separates the arguments that name objects from the others. Nil: all of them name objects.
	Split func(args []string) (objects, others []string, err error)
}

// Extend adds our kinds to a command of kubectl, with the same flags.
func Extend(f cmdutil.Factory, streams genericiooptions.IOStreams, cmd *cobra.Command, e Extension) *cobra.Command {
	kubectl := cmd.Run
	cmd.Run = nil
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := Command{Command: cmd, IOStreams: streams, Factory: f}
		named, others, err := args, []string(nil), error(nil)
		if e.Split != nil {
			named, others, err = e.Split(args)
		}
		if err != nil || len(named) == 0 && !c.isSet("filename") && !c.isSet("kustomize") {
			kubectl(cmd, args) // which prints how to use it
			return nil         //nolint:nilerr // kubectl has printed it
		}
		objects, err := c.Find(named)
		if err != nil {
			return err
		}
		ours, theirs := e.partition(objects)
		switch {
		case len(ours) == 0:
			kubectl(cmd, args)
			return nil
		case theirs > 0:
			return errors.New("objects of apps.kruise.io or with rollouts in place, and others: call the command once for each")
		}
		return e.Run(c, ours, others)
	}
	return cmd
}

// partition returns the objects that the command is for, and how many others there are.
func (e Extension) partition(objects []Object) (ours []Object, others int) {
	for _, o := range objects {
		if kinds.IsOurs(o.GroupVersionKind().GroupKind()) || e.Takes != nil && e.Takes(o.Unstructured) {
			ours = append(ours, o)
		} else {
			others++
		}
	}
	return ours, others
}

// Find returns the objects that arguments name, or those of the flags --filename, --kustomize and --selector.
func (c Command) Find(args []string) ([]Object, error) {
	namespace, enforce, err := c.Factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	files := &resource.FilenameOptions{
		Filenames: c.list("filename"), Kustomize: c.Text("kustomize"), Recursive: c.Is("recursive"),
	}
	everything := c.Flags().Lookup("all") == nil || c.Is("all") // a type without a name
	b := c.Factory.NewBuilder().Unstructured().ContinueOnError().NamespaceParam(namespace).DefaultNamespace().
		FilenameParam(enforce, files).Flatten()
	if c.Is("local") {
		b = b.Local()
	} else {
		b = b.LabelSelectorParam(c.Text("selector")).ResourceTypeOrNameArgs(everything, args...).Latest()
	}
	infos, err := b.Do().Infos()
	if err != nil {
		return nil, err
	}
	objects := make([]Object, 0, len(infos))
	for _, info := range infos {
		o, err := New(info)
		if err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// New returns the object that a builder has read.
func New(info *resource.Info) (Object, error) {
	o, ok := info.Object.(*unstructured.Unstructured)
	if !ok {
		return Object{}, fmt.Errorf("read %s: the API server returned %T", info.Name, info.Object)
	}
	return Object{Unstructured: o, Info: info}, nil
}

// Named returns the object of one argument, such as configmap/x, whatever the flags of the command select.
func (c Command) Named(arg string) (Object, error) {
	namespace, _, err := c.Factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return Object{}, err
	}
	infos, err := c.Factory.NewBuilder().Unstructured().NamespaceParam(namespace).DefaultNamespace().
		ResourceTypeOrNameArgs(false, arg).SingleResourceType().Flatten().Do().Infos()
	if err != nil {
		return Object{}, err
	}
	if len(infos) != 1 {
		return Object{}, fmt.Errorf("%s names %d objects, must be 1", arg, len(infos))
	}
	return New(infos[0])
}

// NamedPod returns the pod of an argument, with or without its type.
func (c Command) NamedPod(arg string) (Object, error) {
	if !strings.Contains(arg, "/") {
		arg = "pods/" + arg
	}
	o, err := c.Named(arg)
	if err == nil && o.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "Pod"}) {
		return Object{}, fmt.Errorf("%s is no pod", arg)
	}
	return o, err
}

// Mapping returns how the API server prefers to serve a kind.
func (c Command) Mapping(kind schema.GroupKind) (*meta.RESTMapping, error) {
	mapper, err := c.Factory.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	return mapper.RESTMapping(kind)
}

// List returns the objects of a kind: of all namespaces where the namespace is empty.
func (c Command) List(
	kind schema.GroupKind, namespace string, options metav1.ListOptions,
) ([]unstructured.Unstructured, error) {
	mapping, err := c.Mapping(kind)
	if err != nil {
		return nil, err
	}
	dynamic, err := c.Factory.DynamicClient()
	if err != nil {
		return nil, err
	}
	list, err := dynamic.Resource(mapping.Resource).Namespace(namespace).List(c.Context(), options)
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// At returns an object that was listed as one that can be patched.
func (c Command) At(kind schema.GroupKind, o *unstructured.Unstructured) (Object, error) {
	mapping, err := c.Mapping(kind)
	if err != nil {
		return Object{}, err
	}
	client, err := c.Factory.UnstructuredClientForMapping(mapping)
	if err != nil {
		return Object{}, err
	}
	info := &resource.Info{Client: client, Mapping: mapping, Namespace: o.GetNamespace(), Name: o.GetName(), Object: o}
	return Object{Unstructured: o, Info: info}, nil
}

// Get returns the object of a kind and a name.
func (c Command) Get(kind schema.GroupKind, namespace, name string) (Object, error) {
	mapping, err := c.Mapping(kind)
	if err != nil {
		return Object{}, err
	}
	client, err := c.Factory.UnstructuredClientForMapping(mapping)
	if err != nil {
		return Object{}, err
	}
	info := &resource.Info{Client: client, Mapping: mapping, Namespace: namespace, Name: name}
	if err := info.Get(); err != nil {
		return Object{}, err
	}
	return New(info)
}

// Text returns the value of a flag, empty where the command has no such flag.
func (c Command) Text(flag string) string {
	if f := c.Flags().Lookup(flag); f != nil {
		return f.Value.String()
	}
	return ""
}

// Is returns the value of a flag that is a switch.
func (c Command) Is(flag string) bool { return c.Text(flag) == "true" }

func (c Command) isSet(flag string) bool {
	f := c.Flags().Lookup(flag)
	return f != nil && f.Changed
}

func (c Command) list(flag string) []string {
	f := c.Flags().Lookup(flag)
	if f == nil {
		return nil
	}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return nil
}

// Manifests returns the objects in the files that the flags name. No API server is asked.
func (c Command) Manifests() ([]*unstructured.Unstructured, error) {
	namespace, enforce, err := c.Factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	infos, err := c.Factory.NewBuilder().Unstructured().Local().ContinueOnError().
		NamespaceParam(namespace).DefaultNamespace().FilenameParam(enforce, &resource.FilenameOptions{
		Filenames: c.list("filename"), Kustomize: c.Text("kustomize"), Recursive: c.Is("recursive"),
	}).Flatten().Do().Infos()
	if err != nil {
		return nil, err
	}
	manifests := make([]*unstructured.Unstructured, 0, len(infos))
	for _, info := range infos {
		o, err := New(info)
		if err != nil {
			return nil, err
		}
		manifests = append(manifests, o.Unstructured)
	}
	return manifests, nil
}
