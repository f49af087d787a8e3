package target

import (
	"fmt"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/cli-runtime/pkg/resource"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"

	"github.com/kruisekit/kruisekit/write"
)

// Set returns the operations that give a field a value, and create missing objects on the way.
func Set(o *unstructured.Unstructured, value any, path ...string) []write.Op {
	for i := 1; i < len(path); i++ {
		_, found, err := unstructured.NestedFieldNoCopy(o.Object, path[:i]...)
		if found && err == nil {
			continue
		}
		for _, field := range slices.Backward(path[i:]) {
			value = map[string]any{field: value}
		}
		return []write.Op{write.Add(write.Pointer(path[:i]...), value)}
	}
	return []write.Op{write.Add(write.Pointer(path...), value)}
}

// Unchanged returns the operations that make a patch fail where the spec of its object changed since it was read.
func Unchanged(o *unstructured.Unstructured) []write.Op {
	if o.GetGeneration() == 0 {
		return nil
	}
	return []write.Op{write.Test(write.Pointer("metadata", "generation"), o.GetGeneration())}
}

// Patch sends a patch of an object, or only computes it for --dry-run=client, and returns the patched object.
func (c Command) Patch(o Object, ops []write.Op, subresource string) (*unstructured.Unstructured, error) {
	dryRun, err := c.dryRun()
	if err != nil {
		return nil, err
	}
	data, err := write.Encode(ops)
	if err != nil {
		return nil, err
	}
	if dryRun == cmdutil.DryRunClient || c.Is("local") {
		return apply(o.Unstructured, data)
	}
	answer, err := resource.NewHelper(o.Info.Client, o.Info.Mapping).DryRun(dryRun == cmdutil.DryRunServer).
		WithFieldManager(c.fieldManager()).WithSubresource(subresource).
		Patch(o.Info.Namespace, o.Info.Name, types.JSONPatchType, data, nil)
	if err != nil {
		return nil, fmt.Errorf("patch %s %s: %w", o.Info.Mapping.Resource.Resource, o.Info.Name, err)
	}
	patched, ok := answer.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("patch %s: the API server returned %T", o.Info.Name, answer)
	}
	return patched, nil
}

// apply returns an object after a patch.
func apply(o *unstructured.Unstructured, data []byte) (*unstructured.Unstructured, error) {
	before, err := o.MarshalJSON()
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return nil, err
	}
	after, err := patch.Apply(before)
	if err != nil {
		return nil, fmt.Errorf("patch %s: %w", o.GetName(), err)
	}
	patched := &unstructured.Unstructured{}
	return patched, patched.UnmarshalJSON(after)
}

// Create sends a new object, or only prints what it would be.
func (c Command) Create(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	dryRun, err := c.dryRun()
	if err != nil || dryRun == cmdutil.DryRunClient {
		return o, err
	}
	mapper, err := c.Factory.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	kind := o.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	client, err := c.Factory.UnstructuredClientForMapping(mapping)
	if err != nil {
		return nil, err
	}
	answer, err := resource.NewHelper(client, mapping).DryRun(dryRun == cmdutil.DryRunServer).
		WithFieldManager(c.fieldManager()).Create(o.GetNamespace(), true, o)
	if err != nil {
		return nil, fmt.Errorf("create %s %s: %w", mapping.Resource.Resource, o.GetName(), err)
	}
	created, ok := answer.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("create %s: the API server returned %T", o.GetName(), answer)
	}
	return created, nil
}

// Print prints what was done with an object: its name and the operation, or the object in the format of --output.
func (c Command) Print(o runtime.Object, operation string) error {
	printer, err := c.printer(operation)
	if err != nil {
		return err
	}
	return printer.PrintObj(o, c.Out)
}

func (c Command) printer(operation string) (printers.ResourcePrinter, error) {
	flags := genericclioptions.NewPrintFlags(operation).WithTypeSetter(scheme.Scheme)
	*flags.OutputFormat = c.Text("output")
	*flags.TemplatePrinterFlags.TemplateArgument = c.Text("template")
	*flags.TemplatePrinterFlags.AllowMissingKeys = c.Text("allow-missing-template-keys") != "false"
	managed := c.Is("show-managed-fields")
	flags.JSONYamlPrintFlags.ShowManagedFields = managed
	dryRun, err := c.dryRun()
	if err != nil {
		return nil, err
	}
	cmdutil.PrintFlagsWithDryRunStrategy(flags, dryRun)
	return flags.ToPrinter()
}

func (c Command) dryRun() (cmdutil.DryRunStrategy, error) {
	if c.Flags().Lookup("dry-run") == nil {
		return cmdutil.DryRunNone, nil
	}
	return cmdutil.GetDryRunStrategy(c.Command)
}

func (c Command) fieldManager() string {
	if manager := c.Text("field-manager"); manager != "" {
		return manager
	}
	return "kubectl-kruise"
}
