import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { takeToken } from "./api";
import { reconnect } from "./events/store";
import { applyTheme } from "./theme";
import "./style/base.css";
import "./style/components.css";
import "./style/panes.css";

takeToken(reconnect);
applyTheme();
reconnect();
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
