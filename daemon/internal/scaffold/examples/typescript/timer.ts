// Counts down on the session's clock, so that a test in virtual time need not wait for it.
import { connect } from "./service/glasses.ts";

const glasses = await connect({ app: { name: "Timer", version: "1.0" } });
for (let left = 5; left > 0; left--) {
  await glasses.show({ type: "text", text: String(left), style: "title", align: "center" });
  await glasses.sleep(1000);
}
await glasses.show({ type: "text", text: "Done", style: "title", align: "center" });
await glasses.play("success");
glasses.close();
