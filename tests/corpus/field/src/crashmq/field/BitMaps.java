package crashmq.field;

import org.apache.rocketmq.store.CommitLogDispatcher;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.DispatchRequest;

/** Gives each dispatched message a bit map, in the place of a broker's filters. */
final class BitMaps implements CommitLogDispatcher {

    private static final int SIZE = 8;

    /** Must come before the store's own dispatchers, so it is told of first. */
    static void into(DefaultMessageStore store) {
        store.getDispatcherList().addFirst(new BitMaps());
    }

    @Override
    public void dispatch(DispatchRequest request) {
        byte[] bits = new byte[SIZE];
        for (int i = 0; i < SIZE; i++) {
            bits[i] = (byte) (request.getTagsCode() >>> 8 * i);
        }
        request.setBitMap(bits);
    }
}
