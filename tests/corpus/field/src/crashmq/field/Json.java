package crashmq.field;

/** One JSON object, written by hand: the versions of RocketMQ bring different JSON libraries. */
final class Json {

    private final StringBuilder text = new StringBuilder("{");

    Json put(String name, String value) {
        key(name);
        if (value == null) {
            text.append("null");
        } else {
            quote(value);
        }
        return this;
    }

    Json put(String name, long value) {
        key(name).text.append(value);
        return this;
    }

    Json put(String name, boolean value) {
        key(name).text.append(value);
        return this;
    }

    @Override
    public String toString() {
        return text + "}";
    }

    private Json key(String name) {
        if (text.length() > 1) {
            text.append(", ");
        }
        quote(name);
        text.append(": ");
        return this;
    }

    private void quote(String value) {
        text.append('"');
        for (char unit : value.toCharArray()) {
            boolean isPlain = unit >= ' ' && unit < 127 && unit != '"' && unit != '\\';
            text.append(isPlain ? String.valueOf(unit) : String.format("\\u%04x", (int) unit));
        }
        text.append('"');
    }
}
