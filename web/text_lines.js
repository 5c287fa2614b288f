// "Nodes 2.0" reads a run's text as Markdown, which joins its lines; two spaces at the end of a line keep them apart.
// The classic page shows the same with them as without.
import { app } from "../../scripts/app.js";

const TEXT = "$$node-text-preview"; // the page's name of the place for a run's text

app.registerExtension({
    name: "JacobiAR.textLines",
    beforeRegisterNodeDef(nodeType, nodeData) {
        if (!nodeData.name.startsWith("JacobiAR")) return;
        const add = nodeType.prototype.addCustomWidget;
        nodeType.prototype.addCustomWidget = function (widget) {
            const set = widget.options?.setValue;
            if (widget.name === TEXT && set) {
                widget.options.setValue = (text) => set(String(text).replace(/ *\n/g, "  \n"));
            }
            return add.apply(this, arguments);
        };
    },
});
