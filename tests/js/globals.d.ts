interface Window {
  Plotly: any;
}
