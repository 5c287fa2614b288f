// New nodes begin large enough for the text and the picture that a run puts on them. A workflow's own sizes win.
import { app } from "../../scripts/app.js";

const NARROWEST = 360; // has room for the lines of text that nodes/node_text.py makes
const SIZES = {
    JacobiARCompareDecoders: [560, 1200],
    JacobiARCompareTokens: [560, 420],
    JacobiARDecodingReport: [620, 560],
    JacobiARGenerate: [380, 890],
    JacobiARListModels: [640, 420],
};

app.registerExtension({
    name: "JacobiAR.startSizes",
    nodeCreated(node) {
        if (!node.comfyClass?.startsWith("JacobiAR")) return;
        const [width, height] = SIZES[node.comfyClass] ?? [NARROWEST, 0];
        node.setSize([Math.max(width, node.size[0]), Math.max(height, node.size[1])]);
    },
});
